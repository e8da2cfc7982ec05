// Requests to the kernel's network configuration.
#include "kernel/netlink.hpp"

#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>

namespace pinfold {

namespace {

constexpr size_t kLongestAnswer = 32768;  // the kernel fills at most this much at a time

Result<size_t> receive(int socket, std::array<char, kLongestAnswer>& buffer) {
    for (;;) {
        const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
        if (got >= 0) return static_cast<size_t>(got);
        if (errno != EINTR) return errno_error("netlink: receive");
    }
}

// Nothing: the conversation goes on.
std::optional<Result<void>> end_of(const nlmsghdr& message) {
    if (message.nlmsg_type == NLMSG_DONE) return Result<void>();
    if (message.nlmsg_type != NLMSG_ERROR) return std::nullopt;
    const int error = body_of<nlmsgerr>(message).error;
    if (error == 0) return Result<void>();
    return Result<void>(errno_error(-error, "netlink"));
}

}  // namespace

NetlinkRequest& NetlinkRequest::add(uint16_t attribute, std::string_view bytes) {
    append(rtattr{static_cast<unsigned short>(RTA_LENGTH(bytes.size())), attribute});
    const size_t at = bytes_.size();
    bytes_.resize(at + RTA_ALIGN(bytes.size()));
    std::memcpy(bytes_.data() + at, bytes.data(), bytes.size());
    return *this;
}

NetlinkRequest& NetlinkRequest::add(uint16_t attribute, uint32_t number) {
    return add(attribute, std::string_view(reinterpret_cast<const char*>(&number), sizeof number));
}

std::string_view NetlinkRequest::bytes() {
    const auto length = static_cast<uint32_t>(bytes_.size());
    std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
    return {bytes_.data(), bytes_.size()};
}

Result<NetlinkSocket> NetlinkSocket::open() {
    UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!fd) return errno_error("netlink: socket");
    return NetlinkSocket(std::move(fd));
}

Result<void> NetlinkSocket::ask(NetlinkRequest request, const Visitor& on_answer) const {
    const std::string_view bytes = request.bytes();
    if (::send(fd_.get(), bytes.data(), bytes.size(), 0) != ssize_t(bytes.size())) return errno_error("netlink: send");
    alignas(nlmsghdr) std::array<char, kLongestAnswer> buffer;
    for (;;) {
        auto left = static_cast<unsigned>(TRY(receive(fd_.get(), buffer)));
        for (const auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
             message = NLMSG_NEXT(message, left)) {
            if (auto end = end_of(*message)) return std::move(*end);
            if (on_answer) on_answer(*message);
        }
    }
}

std::string_view find_attribute(const nlmsghdr& message, size_t header, uint16_t type) {
    const char* at = &body_of<char>(message) + NLMSG_ALIGN(header);
    auto left = static_cast<int>(message.nlmsg_len - NLMSG_SPACE(header));
    for (const auto* attribute = reinterpret_cast<const rtattr*>(at); RTA_OK(attribute, left);
         attribute = RTA_NEXT(attribute, left)) {
        if (attribute->rta_type == type) return {static_cast<const char*>(RTA_DATA(attribute)), RTA_PAYLOAD(attribute)};
    }
    return {};
}

}  // namespace pinfold
