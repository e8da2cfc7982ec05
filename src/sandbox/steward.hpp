// The steward: a process of pinfold's that has a job run by another runtime. It is the nearest subreaper, so that the
// job's first process becomes its child, and it outlives pinfold by as much as it takes to remove all that was made.
//
//     steward    -> supervisor   born    the job is created: pid and pidfd of its first process
//     supervisor -> steward      go      it may start: from here on its time runs
//     steward    -> supervisor   ended   how its first process ended; its group is still there, to be read
//     (end of file)                      the supervisor is done, or dead: the job is killed and removed
//
// Instead of any of its messages it may send `failed`.
#pragma once

#include <sys/types.h>

#include <string>

#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/protocol.hpp"
#include "sandbox/other_bundle.hpp"
#include "sandbox/other_runtime.hpp"
#include "sandbox/streams.hpp"

namespace pinfold {

struct StewardJob {
    std::string id;
    const OtherRuntime& runtime;
    const OtherBundle& bundle;
    CgroupPath group;
    JobStreams& streams;
};

class Steward {
public:
    static Result<Steward> start(const StewardJob& job);
    Steward(Steward&& other) noexcept;
    Steward(const Steward&) = delete;
    Steward& operator=(const Steward&) = delete;
    Steward& operator=(Steward&&) = delete;
    ~Steward();  // waits until it has removed everything

    const Channel& link() const { return link_; }
    int pidfd() const { return pidfd_.get(); }

private:
    Steward(pid_t pid, Channel link);

    pid_t pid_;
    Channel link_;
    UniqueFd pidfd_;
};

}  // namespace pinfold
