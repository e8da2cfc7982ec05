// The subreaper: a process of pinfold's that has a job run by another runtime. It is the nearest subreaper, so that the
// job's first process becomes its child, and it outlives pinfold by as much as it takes to remove all that was made.
//
//     subreaper  -> supervisor   born    the job is created: pid and pidfd of its first process
//     supervisor -> subreaper    go      it may start: from here on its time runs
//     subreaper  -> supervisor   ended   how its first process ended; its group is still there, to be read
//     (end of file)                      the supervisor is done, or dead: the job is killed and removed
//
// Instead of any of its messages it may send `failed`.
#pragma once

#include <sys/types.h>

#include <string>

#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/spawn.hpp"
#include "sandbox/external_bundle.hpp"
#include "sandbox/external_runtime.hpp"
#include "sandbox/streams.hpp"

namespace pinfold {

struct ExternalJob {
    std::string id;
    const ExternalRuntime& runtime;
    const ExternalBundle& bundle;
    CgroupPath group;
    JobStreams& streams;
};

class ExternalSubreaper {
public:
    static Result<ExternalSubreaper> start(const ExternalJob& job);
    ExternalSubreaper(ExternalSubreaper&& other) noexcept;
    ExternalSubreaper(const ExternalSubreaper&) = delete;
    ExternalSubreaper& operator=(const ExternalSubreaper&) = delete;
    ExternalSubreaper& operator=(ExternalSubreaper&&) = delete;
    ~ExternalSubreaper();  // waits until it has removed everything

    const Channel& link() const { return link_; }
    int pidfd() const { return pidfd_.get(); }

private:
    ExternalSubreaper(pid_t pid, Channel link);

    pid_t pid_;
    Channel link_;
    UniqueFd pidfd_;
};

}  // namespace pinfold
