// A child process that dies and is reaped with its owner.
#include "kernel/child_guard.hpp"

#include <signal.h>
#include <unistd.h>

#include <utility>

#include "base/process.hpp"

namespace pinfold {

ChildGuard::ChildGuard(pid_t pid) : pid_(pid), owner_(::getpid()) {}

ChildGuard::ChildGuard(ChildGuard&& other) noexcept
    : pid_(other.pid_), owner_(other.owner_), armed_(std::exchange(other.armed_, false)) {}

ChildGuard::~ChildGuard() {
    if (!armed_ || ::getpid() != owner_) return;
    // Not reaped yet, so the pid is still ours: no other process can have it.
    ::kill(pid_, SIGKILL);
    reap(pid_);
}

}  // namespace pinfold
