// The listener of a job's seccomp filter: every call that the profile forbids is counted, and answered as the profile
// says. Allowed calls never come here. If this process dies, the kernel answers with ENOSYS: nothing becomes possible.
#pragma once

#include <linux/filter.h>

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
    std::vector<DeniedCall> take() const;

private:
    Denials(UniqueFd listener, std::vector<sock_filter> program)
        : listener_(std::move(listener)), program_(std::move(program)) {}
    void count(const seccomp_notif& call);
    void slow_down();

    UniqueFd listener_;
    std::vector<sock_filter> program_;
    std::vector<char> request_;  // as large as this kernel has them
    std::vector<char> response_;
    std::map<std::pair<uint32_t, int>, DeniedCall> calls_;  // by architecture and number
    uint64_t numbers_ = 0;                                  // attempts at new ones that have no name
    uint64_t total_ = 0;
};

}  // namespace pinfold
