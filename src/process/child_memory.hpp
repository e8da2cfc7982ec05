// A word in the memory of a child, for what cannot be said otherwise: a child that has loaded its filter cannot rely on
// a single system call. It waits there without any, until its peer has written that it may go on.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "pinfold/result.hpp"
#include "process/protocol.hpp"

namespace pinfold {

class WaitingWord {
public:
    // For the peer.
    uint64_t address() const { return reinterpret_cast<uintptr_t>(&word_); }
    // The child: until the peer lets it go on.
    void wait();

private:
    std::atomic<uint32_t> word_ = 0;
};

// The peer's side. It takes the right to trace the child.
struct ChildMemory {
    pid_t pid;
    int pidfd;  // of the same

    // Until the child waits at the word. Whatever it says on the channel instead is a failure.
    Result<void> await_waiting(uint64_t address, const Channel& channel) const;
    Result<void> let_go_on(uint64_t address) const;
};

}  // namespace pinfold
