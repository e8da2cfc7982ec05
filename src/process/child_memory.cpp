// A word in the memory of a child.
#include "process/child_memory.hpp"

#include <poll.h>
#include <sys/uio.h>

#include <utility>

#include "base/strings.hpp"
#include "kernel/init_process.hpp"

namespace pinfold {

namespace {

constexpr uint32_t kWaiting = 1, kGoOn = 2;

std::pair<iovec, iovec> parts(uint32_t& word, uint64_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process
    return {{&word, sizeof word}, {reinterpret_cast<void*>(address), sizeof word}};
}

Error lost(int pidfd, std::string_view what) {
    Error error = errno_error(concat(what, " the process that was started"));
    const Result<bool> lives = send_signal(pidfd, 0);
    if (lives && !*lives) return plain_error("the process ended while its rights were restricted");
    return error;
}

}  // namespace

// Without a system call there is neither sleep nor clock: it counts, for some minutes, in case the peer has died.
void WaitingWord::wait() {
    constexpr uint64_t kTurns = uint64_t{1} << 32;
    word_.store(kWaiting, std::memory_order_release);
    for (uint64_t turn = 0; word_.load(std::memory_order_acquire) != kGoOn; ++turn) {
        if (turn == kTurns) __builtin_trap();
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
}

Result<void> ChildMemory::await_waiting(uint64_t address, const Channel& channel) const {
    constexpr timespec kPause{0, 50'000};
    for (;;) {
        uint32_t word = 0;
        const auto [here, there] = parts(word, address);
        if (::process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof word) return lost(pidfd, "look at");
        if (word == kWaiting) return {};
        pollfd said{channel.fd(), POLLIN, 0};
        if (::ppoll(&said, 1, &kPause, nullptr) <= 0) continue;
        std::optional<Packet> packet = TRY(channel.receive());
        if (packet) return std::move(packet->error);
        return plain_error("the process ended while its rights were restricted");
    }
}

// It cannot have ended, and its pid not be another's: it waits for us.
Result<void> ChildMemory::let_go_on(uint64_t address) const {
    uint32_t word = kGoOn;
    const auto [here, there] = parts(word, address);
    if (::process_vm_writev(pid, &here, 1, &there, 1, 0) != sizeof word) return lost(pidfd, "let go on");
    return {};
}

}  // namespace pinfold
