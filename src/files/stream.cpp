// The conversation between the two sides of a copy.
#include "files/stream.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/clock.hpp"
#include "base/process.hpp"

namespace pinfold {

namespace {

// Both ends are the same program, so the header is a plain struct.
struct Header {
    Word word;
    uint32_t mode;
    uint32_t name_length;  // the text is what follows the name
};

Result<void> send_packet(int socket, const Header& header, std::string_view name, std::string_view text) {
    iovec parts[] = {{const_cast<Header*>(&header), sizeof header},
                     {const_cast<char*>(name.data()), name.size()},
                     {const_cast<char*>(text.data()), text.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = std::size(parts);
    while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
        if (errno == ECONNRESET) errno = EPIPE;  // it has ended without reading all that it was sent
        if (errno != EINTR) return errno_error("send to the other side of the copy");
    }
    return {};
}

// A reason is printed on somebody's terminal, and the other side works where the container could have got at it.
std::string printable(std::string_view text) {
    std::string out(text);
    std::ranges::replace_if(
        out, [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }, '?');
    return out;
}

Error cut_short() { return plain_error("a message between the two sides of the copy was cut short"); }

}  // namespace

Result<std::pair<Stream, Stream>> Stream::make_pair() {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return errno_error("socketpair");
    return std::pair<Stream, Stream>(Stream(UniqueFd(sockets[0])), Stream(UniqueFd(sockets[1])));
}

Result<void> Stream::send(const Item& item) const {
    TRY(await(POLLOUT));
    const Header header{item.word, item.mode, static_cast<uint32_t>(item.name.size())};
    return send_packet(fd_.get(), header, item.name, item.text);
}

void Stream::send_failure(const Error& error) const {
    const ErrorPacket packet(error);
    [[maybe_unused]] const Result<void> sent = send_packet(fd_.get(), {Word::failed, 0, 0}, "", packet.bytes());
}

void Stream::give_up_at(int64_t deadline, int interrupt) {
    deadline_ = deadline;
    interrupt_ = interrupt;
}

// Also where the other side speaks without a pause.
Result<void> Stream::await(short event) const {
    if (deadline_ == INT64_MAX && interrupt_ < 0) return {};
    constexpr int64_t kMillisecond = 1'000'000;
    for (;;) {
        const int64_t left = (deadline_ - monotonic_ns() + kMillisecond - 1) / kMillisecond;
        if (left <= 0) return Error{ETIME, "the copy took too long", {}};
        pollfd slots[] = {{fd_.get(), event, 0}, {interrupt_, POLLIN, 0}};
        if (::poll(slots, 2, static_cast<int>(std::min<int64_t>(left, INT_MAX))) < 0 && errno != EINTR)
            return errno_error("poll");
        if (slots[1].revents != 0) return Error{EINTR, "the copy was interrupted by a signal", {}};
        if (slots[0].revents != 0) return {};
    }
}

Result<Item> Stream::receive_any() const {
    TRY(await(POLLIN));
    ssize_t length = 0;
    // ECONNRESET is told once, where the other side has ended with our words unread; its last words come after that.
    while ((length = ::recv(fd_.get(), buffer_.get(), kMaxPacket, MSG_TRUNC)) < 0) {
        if (errno != EINTR && errno != ECONNRESET) return errno_error("receive from the other side of the copy");
    }
    if (length == 0) return Error{EPIPE, "the other side of the copy has ended", {}};
    Header header{};
    if (size_t(length) > kMaxPacket || size_t(length) < sizeof header) return cut_short();
    std::memcpy(&header, buffer_.get(), sizeof header);
    const std::string_view rest(buffer_.get() + sizeof header, size_t(length) - sizeof header);
    if (header.name_length > rest.size() || header.word > Word::failed) return cut_short();
    return Item{header.word, header.mode, rest.substr(0, header.name_length), rest.substr(header.name_length)};
}

Error Stream::error_of(const Item& failed) {
    const std::optional<Error> error = unpack_error(failed.text);
    if (!error || error->message.empty()) return cut_short();
    return {error->code, printable(error->message), printable(error->hint)};
}

Result<Item> Stream::receive() const {
    const Item item = TRY(receive_any());
    if (item.word == Word::failed) return error_of(item);
    return item;
}

}  // namespace pinfold
