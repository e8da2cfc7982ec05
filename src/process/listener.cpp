// The listener of a seccomp filter, from the child to the program that will decide.
#include "process/listener.hpp"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/fd_passing.hpp"
#include "kernel/init_process.hpp"
#include "seccomp/load.hpp"
#include "state/record.hpp"

namespace pinfold {

namespace {

std::atomic<uint32_t> handed_over = 0;

// Without a system call there is neither sleep nor clock: it counts, for some minutes, in case the peer has died.
void await_hand_over() {
    constexpr uint64_t kTurns = uint64_t{1} << 32;
    for (uint64_t turn = 0; handed_over.load(std::memory_order_acquire) == 0; ++turn) {
        if (turn == kTurns) __builtin_trap();
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
}

// The kernel takes the lowest number that is free.
Result<int> next_descriptor(int any) {
    const UniqueFd next(::dup(any));
    if (!next) return errno_error("dup");
    return next.get();
}

// Until the child has made its one call. Whatever it says instead is a failure.
Result<UniqueFd> take_listener(int pidfd, int number, const Channel& channel) {
    constexpr int kPauseMs = 1;
    for (;;) {
        UniqueFd listener(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0)));
        if (listener) return listener;
        if (errno != EBADF) {
            return errno_error("take the listener out of the process: pidfd_getfd")
                .with_hint("it takes CAP_SYS_PTRACE over the container's user");
        }
        pollfd word{channel.fd(), POLLIN, 0};
        if (::poll(&word, 1, kPauseMs) <= 0) continue;
        std::optional<Packet> packet = TRY(channel.receive());
        if (packet) return std::move(packet->error);
        return plain_error("the process ended while it loaded its filter");
    }
}

// The document that the specification calls the container process state.
std::string process_state(const ListeningProcess& process, const Seccomp& profile) {
    const std::string metadata =
        profile.listener_metadata.empty() ? "" : concat(",\"metadata\":", json_quoted(profile.listener_metadata));
    return concat("{\"ociVersion\":", json_quoted(process.state.record.oci_version),
                  ",\"fds\":[\"seccompFd\"],\"pid\":", process.pid, metadata,
                  ",\"state\":", state_to_json_line(process.state), "}");
}

Result<void> send_listener(int listener, const ListeningProcess& process, const Seccomp& profile) {
    const UniqueFd socket = TRY(connect_to_socket("the listener's socket", profile.listener_path));
    return send_fd(socket.get(), listener, process_state(process, profile));
}

// By a descriptor: it stays with the process that it was opened for, whoever gets the pid next.
Result<UniqueFd> open_memory(pid_t pid, int pidfd) {
    UniqueFd memory = TRY(open_at(AT_FDCWD, concat("/proc/", pid, "/mem"), O_WRONLY));
    if (!TRY(send_signal(pidfd, 0))) return plain_error("the process has ended");
    return memory;
}

Result<void> let_go_on(int memory, const ListenerOffer& offer) {
    const uint32_t yes = 1;
    if (::pwrite(memory, &yes, sizeof yes, static_cast<off_t>(offer.word)) == sizeof yes) return {};
    return errno_error("seccomp listener: let the process go on");
}

}  // namespace

Result<void> load_with_listener(const SeccompFilter& filter, const Channel& channel) {
    if ((filter.flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) == 0) {
        TRY(load_seccomp(filter));
        return {};
    }
    const int number = TRY(next_descriptor(channel.fd()));
    TRY(channel.send_listener({number, reinterpret_cast<uintptr_t>(&handed_over)}));
    if (TRY(load_seccomp(filter)) != number) __builtin_trap();  // nobody would find it
    await_hand_over();
    return {};
}

Result<void> hand_over_listener(const ListenerOffer& offer, const Channel& channel, const ListeningProcess& process,
                                const Seccomp& profile) {
    const UniqueFd memory = TRY_IN("seccomp listener", open_memory(process.pid, process.pidfd));
    const UniqueFd listener = TRY_IN("seccomp listener", take_listener(process.pidfd, offer.number, channel));
    TRY_IN("linux.seccomp.listenerPath", send_listener(listener.get(), process, profile));
    return let_go_on(memory.get(), offer);
}

Result<UniqueFd> adopt_listener(const ListenerOffer& offer, const Channel& channel, pid_t pid, int pidfd) {
    const UniqueFd memory = TRY_IN("seccomp listener", open_memory(pid, pidfd));
    UniqueFd listener = TRY_IN("seccomp listener", take_listener(pidfd, offer.number, channel));
    TRY(let_go_on(memory.get(), offer));
    return listener;
}

Result<void> await_exec(const Channel& channel, int listener) {
    pollfd slots[] = {{channel.fd(), POLLIN, 0}, {listener, POLLIN, 0}};
    while (::poll(slots, 2, -1) < 0) {
        if (errno != EINTR) return errno_error("poll");
    }
    if (slots[0].revents != 0 || ::poll(slots, 1, 0) > 0) return {};
    return plain_error("seccomp: the profile forbids the very call that starts the program")
        .with_hint("allow execve in it");
}

}  // namespace pinfold
