// The listener of a seccomp filter, from the child to the program that will decide.
#include "process/listener.hpp"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.hpp"
#include "kernel/fd_passing.hpp"
#include "process/child_memory.hpp"
#include "seccomp/load.hpp"
#include "state/record.hpp"

namespace pinfold {

namespace {

constexpr PausePoint kHandedOver(PausePoint::kListener);

// The document that the specification calls the container process state.
std::string process_state(const ContainerState& state, pid_t pid, const Seccomp& profile) {
    const std::string metadata =
        profile.listener_metadata.empty() ? "" : concat(",\"metadata\":", json_quoted(profile.listener_metadata));
    return concat("{\"ociVersion\":", json_quoted(state.record.oci_version), ",\"fds\":[\"seccompFd\"],\"pid\":", pid,
                  metadata, ",\"state\":", state_to_json_line(state), "}");
}

}  // namespace

bool has_listener(const std::optional<SeccompFilter>& filter) {
    return filter && (filter->flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0;
}

// The kernel takes the lowest number that is free.
Result<ListenerOffer> offer_listener(const std::optional<SeccompFilter>& filter, int any) {
    if (!has_listener(filter)) return ListenerOffer{};
    const UniqueFd next(::dup(any));
    if (!next) return errno_error("dup");
    return ListenerOffer{next.get(), {kHandedOver.address()}};
}

Result<void> load_with_listener(const SeccompFilter& filter, const ListenerOffer& offer) {
    const int listener = TRY(load_seccomp(filter));
    if (offer.place.word == 0) return {};
    if (listener != offer.number) __builtin_trap();  // nobody would find it
    kHandedOver.wait();
    return {};
}

Result<UniqueFd> take_listener(int pidfd, int number) {
    UniqueFd listener(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd, number, 0)));
    if (listener) return listener;
    return errno_error("take the listener out of the process: pidfd_getfd")
        .with_hint("it takes CAP_SYS_PTRACE over the container's user");
}

Result<void> send_listener(int listener, const ContainerState& state, pid_t pid, const Seccomp& profile) {
    const UniqueFd socket =
        TRY_IN("linux.seccomp.listenerPath", connect_to_socket("the listener's socket", profile.listener_path));
    TRY_IN("linux.seccomp.listenerPath", send_fd(socket.get(), listener, process_state(state, pid, profile)));
    return {};
}

Result<void> await_exec(const Channel& channel, int listener) {
    pollfd call{listener, POLLIN, 0}, said{channel.fd(), POLLIN, 0};
    if (TRY(channel.await({&call, 1})) || ::poll(&said, 1, 0) > 0) return {};
    return plain_error("seccomp: the profile forbids the very call that starts the program")
        .with_hint("allow execve in it");
}

}  // namespace pinfold
