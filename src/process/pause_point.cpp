// A word in the memory of a child.
#include "process/pause_point.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/process.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr uint32_t kWaiting = 1, kGoOn = 2;

std::atomic<uint32_t> words[PausePoint::kCount];
char* pages = nullptr;  // one for each word, where the peer hears of faults in them

size_t page_size() { return size_t(::sysconf(_SC_PAGESIZE)); }

bool hear_of_faults(int faults, const char* begin, size_t size) {
    uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
    uffdio_register range{
        .range = {reinterpret_cast<uintptr_t>(begin), size}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    return ::ioctl(faults, UFFDIO_API, &api) == 0 && ::ioctl(faults, UFFDIO_REGISTER, &range) == 0;
}

std::pair<iovec, iovec> parts(uint32_t& word, uint64_t address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process
    return {{&word, sizeof word}, {reinterpret_cast<void*>(address), sizeof word}};
}

Error ended() { return plain_error("the process ended while its rights were restricted"); }

Error lost(int pidfd, std::string_view what) {
    Error error = errno_error(concat(what, " the process that was started"));
    const Result<bool> lives = send_signal(pidfd, 0);
    return lives && !*lives ? ended() : error;
}

Error last_words(const Channel& channel) {
    Result<std::optional<Packet>> packet = channel.receive();
    if (!packet) return std::move(packet).error();
    return *packet ? std::move((*packet)->error) : ended();
}

// That there is a fault says all: the child touches no other page. What it is, is not read. The descriptor came from
// the child's side, and whoever else has it can have a read from it wait for ever.
Result<void> await_fault(const PausePlace& place, const Channel& channel) {
    pollfd fault{place.faults, POLLIN, 0};
    if (TRY(channel.await({&fault, 1}))) return last_words(channel);
    if ((fault.revents & POLLIN) == 0) return plain_error("the process that was started cannot be heard waiting");
    return {};
}

Result<void> fill_page(const PausePlace& place, int pidfd) {
    std::vector<char> page(page_size());
    std::memcpy(page.data(), &kGoOn, sizeof kGoOn);
    uffdio_copy copy{place.word, reinterpret_cast<uintptr_t>(page.data()), page.size(), 0, 0};
    // EAGAIN: its memory is just being changed. Not by the child, which waits, so this is not tried for ever.
    for (int tries = 0; ::ioctl(place.faults, UFFDIO_COPY, &copy) != 0; ++tries) {
        const bool is_passing = (errno == EAGAIN || errno == EINTR) && tries < 100;
        if (!is_passing) return lost(pidfd, "let go on");
        const timespec pause{0, 1'000'000};
        ::nanosleep(&pause, nullptr);
        copy.copy = 0;
    }
    return {};
}

}  // namespace

UniqueFd open_faults() {
    const size_t size = PausePoint::kCount * page_size();
    UniqueFd faults(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY)));
    if (!faults) return {};
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || !hear_of_faults(faults.get(), static_cast<char*>(memory), size)) return {};
    UniqueFd moved(::fcntl(faults.get(), F_DUPFD_CLOEXEC, faults.get() + 1));
    if (moved) pages = static_cast<char*>(memory);
    return moved;
}

uint64_t PausePoint::address() const {
    return reinterpret_cast<uintptr_t>(pages != nullptr ? pages + name_ * page_size()
                                                        : static_cast<void*>(&words[name_]));
}

// Where nobody hears of it: without a system call there is neither sleep nor clock. It counts, for some minutes, in
// case the peer has died.
void PausePoint::wait() const {
    if (pages != nullptr) {
        const volatile auto* word = reinterpret_cast<const uint32_t*>(pages + name_ * page_size());
        if (*word != kGoOn) __builtin_trap();
        return;
    }
    constexpr uint64_t kTurns = uint64_t{1} << 32;
    words[name_].store(kWaiting, std::memory_order_release);
    for (uint64_t turn = 0; words[name_].load(std::memory_order_acquire) != kGoOn; ++turn) {
        if (turn == kTurns) __builtin_trap();
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
}

Result<void> ChildMemory::await_waiting(const PausePlace& place, const Channel& channel) const {
    if (place.faults >= 0) return await_fault(place, channel);
    for (timespec pause{0, 50'000};; pause.tv_nsec = std::min(2 * pause.tv_nsec, 5'000'000L)) {
        uint32_t word = 0;
        const auto [here, there] = parts(word, place.word);
        if (::process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof word) {
            // One that ends has no memory any more when it still has its end of the channel, and is still to be reaped.
            return errno == ESRCH ? last_words(channel) : lost(pidfd, "look at");
        }
        if (word == kWaiting) break;
        pollfd said{channel.fd(), POLLIN, 0};
        if (::ppoll(&said, 1, &pause, nullptr) > 0) return last_words(channel);
        TRY(channel.check_whether_to_give_up());
    }
    TRY(send_signal(pidfd, SIGSTOP));
    return {};
}

// It cannot have ended, and its pid not be another's: it waits for us.
Result<void> ChildMemory::let_go_on(const PausePlace& place) const {
    if (place.faults >= 0) return fill_page(place, pidfd);
    uint32_t word = kGoOn;
    const auto [here, there] = parts(word, place.word);
    if (::process_vm_writev(pid, &here, 1, &there, 1, 0) != sizeof word) return lost(pidfd, "let go on");
    TRY(send_signal(pidfd, SIGCONT));
    return {};
}

}  // namespace pinfold
