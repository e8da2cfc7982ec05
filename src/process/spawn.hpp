// How a process comes to be that becomes a payload: by one clone, by a joiner, or by a process that gets ready outside
// of a pid namespace that others live in.
//
// Whatever is seen in such a namespace can be taken over by whoever has CAP_SYS_PTRACE there, dumpable or not: its
// root, its descriptors, its rights. So a process gets ready outside, until it has nothing of the host's any more and
// no more rights than the payload will have. Only then does it clone the one that is seen inside, as its parent's own
// child, and is gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/channel.hpp"

namespace pinfold {

struct ChildContext;
class ParentSide;

struct Child {
    ChildGuard guard;
    UniqueFd pidfd;

    pid_t pid() const { return guard.pid(); }
};

// clone3 into the group, if there is one (-1: none). 0 in the child.
Result<pid_t> clone_into(uint64_t flags, int cgroup, int& pidfd);

// With namespaces to join, or clocks to shift, it takes a process in between. There, before all else,
// close_ours() closes what is the parent's alone. Joining a user namespace costs the rights
// over the host, and a pid or time namespace only takes in future children: neither suits the parent itself. The joiner
// joins, then clones the real child as the parent's own (CLONE_PARENT), tells its pid, and is gone.
Result<Child> spawn_by_joiner(ChildContext context, ParentSide& handshake, int cgroup,
                              const std::function<void()>& close_ours);

// In words, each.
std::vector<std::string> new_namespaces(uint64_t flags);

// Where a process keeps its own command line and environment; anyone in a container could read the first.
struct ArgvRegion {
    uintptr_t begin = 0;
    uintptr_t end = 0;
};
ArgvRegion find_argv_region();
void wipe(const ArgvRegion& words);

// A parent that dies takes the child with it. One that had died before gives no signal, but has left its end of the
// channel.
Result<void> depend_on_parent(const Channel& channel);

// Descriptors from `first` on, but for these. Ends logging: its file may be among them.
Result<void> close_all_but(std::span<const int> kept, unsigned first);

// In what was cloned, `as_child` goes on, which must not return. Its parent hears of it on the channel.
Result<void> clone_as_sibling(uint64_t flags, const Channel& channel, const std::function<void()>& as_child);

// The parent's side: what a process cloned that is about to end itself. If it was killed in between, nobody knows the
// new one, which ends with our end of the channel. A signal on signal_fd (-1: none) may ask us to end.
Result<Child> expect_born(const Channel& channel, int cloner_pidfd, int signal_fd = -1);

}  // namespace pinfold
