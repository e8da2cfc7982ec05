// A word in the memory of a child, for what cannot be said otherwise: a child that has loaded its filter cannot rely on
// a single system call. It waits there without any, until its peer has written that it may go on.
//
// The word is in a page that does not exist yet. To read it puts the child to sleep in the kernel, and tells the peer,
// who holds the userfaultfd of that page: it sees the child wait, and answers by filling the page. If the peer dies,
// the page is one of zeros, and the child ends. Where the kernel has no userfaultfd for us, the child waits in a loop
// and the peer has to look; it stops the child as soon as it has seen it there.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/spawn.hpp"

namespace pinfold {

class PausePoint {
public:
    enum Name : size_t { kListener, kBeforeExec, kCount };
    explicit constexpr PausePoint(Name name) : name_(name) {}

    // For the peer.
    uint64_t address() const;
    // The child: until the peer lets it go on.
    void wait() const;

private:
    Name name_;
};

// The child, before it tells any address: what the peer hears of its waiting by, and it alone must hold. Nothing where
// there is no such thing. The number of a descriptor that is opened next is the same as without.
UniqueFd open_faults();

// The peer's side. Without faults it takes the right to trace the child.
struct ChildMemory {
    pid_t pid;
    int pidfd;  // of the same

    // Until the child waits at the word. Whatever it says on the channel instead is a failure.
    Result<void> await_waiting(const PausePlace& place, const Channel& channel) const;
    Result<void> let_go_on(const PausePlace& place) const;
};

}  // namespace pinfold
