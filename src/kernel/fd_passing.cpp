// Descriptors for programs that wait for them on a unix socket.
#include "kernel/fd_passing.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/strings.hpp"

namespace pinfold {

namespace {

Result<size_t> send_part(int socket, msghdr& message) {
    for (;;) {
        const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
        if (sent >= 0) return static_cast<size_t>(sent);
        if (errno == EAGAIN) return plain_error("send a descriptor: nobody takes it");
        if (errno != EINTR) return errno_error("send a descriptor");
    }
}

// A program that listens and does not accept, or takes nothing, would hold us up for ever, whatever our own deadlines
// and signals say.
Result<UniqueFd> make_impatient_socket() {
    constexpr timeval kPatience{5, 0};
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience) != 0)
        return errno_error("make a socket");
    return socket;
}

int connect_again(int socket, const sockaddr_un& address) {
    int status = 0;
    do status = ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
    while (status != 0 && errno == EINTR);
    return status;
}

}  // namespace

Result<UniqueFd> connect_to_socket(std::string_view what, const std::string& path) {
    const std::string step = concat("connect to ", what, " ", quoted(path));
    const UniqueFd target(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!target) return errno_error(step).with_hint("start the program that listens there first");
    UniqueFd socket = TRY_IN(step, make_impatient_socket());
    // Through the descriptor the address is short, however long the path is.
    const std::string link = concat("/proc/self/fd/", target.get());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    link.copy(address.sun_path, sizeof address.sun_path - 1);
    if (connect_again(socket.get(), address) == 0) return socket;
    if (errno == EAGAIN) {
        return plain_error(concat(step, ": nobody accepts there"))
            .with_hint("the program that listens has as many connections waiting as it allows: see whether it hangs");
    }
    Error error = errno_error(step);
    if (error.code != ECONNREFUSED) return error;
    return std::move(error).with_hint("no program listens on this path");
}

Result<void> send_fd(int socket, int fd, std::string_view text) {
    if (text.empty()) return plain_error("send a descriptor: a stream carries none without bytes");
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    iovec part{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    while (!text.empty()) {
        part = {const_cast<char*>(text.data()), text.size()};
        text.remove_prefix(TRY(send_part(socket, message)));
        message.msg_control = nullptr;  // what is left of the text follows without it
        message.msg_controllen = 0;
    }
    return {};
}

}  // namespace pinfold
