// The way into a pid namespace that others live in. Whatever is seen there can be taken over by whoever has
// CAP_SYS_PTRACE there, dumpable or not: its root, its descriptors, its rights. So a process gets ready outside, until
// it has nothing of the host's any more and no more rights than the payload will have. Only then does it clone the one
// that is seen inside, as its parent's own child, and is gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>

#include "pinfold/result.hpp"
#include "process/child.hpp"
#include "process/protocol.hpp"

namespace pinfold {

// Where a process keeps its own command line and environment; anyone in a container could read the first.
struct OwnWords {
    uintptr_t begin = 0;
    uintptr_t end = 0;
};
OwnWords find_own_words();
void wipe(const OwnWords& words);

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
