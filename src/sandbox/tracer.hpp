// Tells a recorder what a job's processes do: they stop at each call that their filter says is to be told, and go on.
//
// Why not the filter's listener: a signal interrupts a call that waits for it, so that programs hear EINTR where they
// never do otherwise. And it would have to be trusted: here the kernel asks the filter again when a call goes on.
#pragma once

#include <sys/types.h>

#include <thread>
#include <utility>

#include "pinfold/result.hpp"
#include "seccomp/recorder.hpp"

namespace pinfold {

class Tracer {
public:
    // Of that process and all that come from it. If this process dies, they are killed.
    static Result<Tracer> start(pid_t pid, Recorder& recorder);

    Tracer(Tracer&&) = default;
    Tracer& operator=(Tracer&&) = delete;
    Tracer(const Tracer&) = delete;
    Tracer& operator=(const Tracer&) = delete;
    ~Tracer();  // waits until all of them have ended; from then on the recorder is the caller's again

private:
    explicit Tracer(std::thread thread) : thread_(std::move(thread)) {}

    std::thread thread_;
};

}  // namespace pinfold
