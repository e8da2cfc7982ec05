// The listener of a job's seccomp filter: every call that the profile forbids is counted, and answered as the profile
// says. Allowed calls never come here. If this process dies, the kernel answers with ENOSYS: nothing becomes possible.
#pragma once

#include <linux/filter.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/unique_fd.hpp"

struct seccomp_notif;

namespace pinfold {

class Denials {
public:
    // `program` is the profile's own, which says what to answer.
    static Result<Denials> create(UniqueFd listener, std::vector<sock_filter> program);

    int fd() const { return listener_.get(); }
    void serve(short events);  // what poll() found
    // Readable when a call that has waited is to be answered.
    int timer() const { return timer_.get(); }
    void answer_waiting();
    std::vector<DeniedCall> take() const;

    // What a program that failed at that time (by monotonic_ns()) may have failed for; empty: nothing was denied right
    // before.
    std::string hint(int64_t failed_at, std::chrono::nanoseconds lived) const;

private:
    Denials(UniqueFd listener, std::vector<sock_filter> program)
        : listener_(std::move(listener)), program_(std::move(program)) {}
    bool receive();
    void count(const seccomp_notif& call);
    bool answer(uint64_t id, int error);  // whether it still waited
    Result<void> slow_down();

    struct Waiting {
        uint64_t id;
        int error;
    };

    UniqueFd listener_;
    UniqueFd timer_;
    std::deque<Waiting> waiting_;  // for their answers, not for being counted
    std::vector<sock_filter> program_;
    std::vector<char> request_;  // as large as this kernel has them
    std::vector<char> response_;
    std::map<std::pair<uint32_t, int>, DeniedCall> calls_;  // by architecture and number
    uint64_t numbers_ = 0;                                  // attempts at new ones that have no name
    uint64_t total_ = 0;
    std::string last_;  // that was denied
    int64_t last_at_ = 0;
};

}  // namespace pinfold
