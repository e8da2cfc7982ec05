// The conversation between the two sides of a copy.
#include "files/stream.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pinfold {

namespace {

// Both ends are the same program, so the header is a plain struct.
struct Header {
    Word word;
    uint32_t mode;
    int32_t code;
    uint32_t name_length;  // the text is what follows the name
};

constexpr size_t kMaxSentence = 4096;  // of a message and of a hint

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
    const Header header{item.word, item.mode, 0, static_cast<uint32_t>(item.name.size())};
    return send_packet(fd_.get(), header, item.name, item.text);
}

void Stream::send_failure(const Error& error) const {
    const std::string_view message = std::string_view(error.message).substr(0, kMaxSentence);
    const std::string_view hint = std::string_view(error.hint).substr(0, kMaxSentence);
    const Header header{Word::failed, 0, error.code, static_cast<uint32_t>(message.size())};
    [[maybe_unused]] const Result<void> sent = send_packet(fd_.get(), header, message, hint);
}

Result<Item> Stream::receive() const {
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
    const Item item{header.word, header.mode, rest.substr(0, header.name_length), rest.substr(header.name_length)};
    if (item.word == Word::failed && item.name.empty()) return cut_short();
    if (item.word == Word::failed) return Error{header.code, printable(item.name), printable(item.text)};
    return item;
}

}  // namespace pinfold
