// ChildGuard: a child process that dies and is reaped with its owner, unless the owner lets it go.
#pragma once

#include <sys/types.h>

namespace pinfold {

class ChildGuard {
public:
    explicit ChildGuard(pid_t pid);
    ChildGuard(ChildGuard&& other) noexcept;
    ChildGuard(const ChildGuard&) = delete;
    ChildGuard& operator=(const ChildGuard&) = delete;
    ChildGuard& operator=(ChildGuard&&) = delete;
    ~ChildGuard();

    pid_t pid() const noexcept { return pid_; }
    // From now on the child is somebody else's to end and to reap.
    void release() noexcept { armed_ = false; }

private:
    pid_t pid_;
    pid_t owner_;  // a copy of this object in a forked child must not kill its sibling
    bool armed_ = true;
};

}  // namespace pinfold
