// The two ends of a copy's stream: what is sent arrives, and what is not whole is refused.
#include "files/stream.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

std::pair<Stream, Stream> make_pair() {
    Result<std::pair<Stream, Stream>> ends = Stream::make_pair();
    REQUIRE(ends);
    return std::move(ends).value();
}

}  // namespace

TEST_CASE("stream: items arrive as they were sent") {
    const auto [one, other] = make_pair();
    const std::string bytes(Stream::kMaxBytes, 'b');
    REQUIRE(one.send({Word::link, 0, "name\n", "target"}));
    REQUIRE(one.send({Word::file, 0640, "", ""}));
    REQUIRE(one.send({.word = Word::bytes, .text = bytes}));
    const Item link = *other.receive();
    CHECK(link.word == Word::link);
    CHECK(link.name == "name\n");
    CHECK(link.text == "target");
    const Item file = *other.receive();
    CHECK(file.word == Word::file);
    CHECK(file.mode == 0640);
    CHECK(file.name.empty());
    CHECK((other.receive()->text == bytes));
}

TEST_CASE("stream: a failure arrives as an error with its hint, also after the sender's end") {
    auto [one, other] = make_pair();
    REQUIRE(other.send({Word::up}));  // left unread, for which the kernel tells of a reset first
    one.send_failure(Error{ENOSPC, "no room", "make some"});
    { const Stream ended = std::move(one); }
    const Result<Item> failed = other.receive();
    REQUIRE_FALSE(failed);
    CHECK(failed.error().code == ENOSPC);
    CHECK(failed.error().message == "no room");
    CHECK(failed.error().hint == "make some");
    CHECK(other.receive().error().code == EPIPE);
    CHECK(other.send({Word::up}).error().code == EPIPE);
}

TEST_CASE("stream: packets that are not whole items are refused") {
    const auto [one, other] = make_pair();
    const std::string too_long(Stream::kMaxBytes + 1000, 'x');
    for (const std::string& packet :
         {std::string("short"), std::string(16, '\xff'), std::string("\2\0\0\0\0\0\0\0\5\0\0\0name", 16), too_long}) {
        REQUIRE(::send(one.fd(), packet.data(), packet.size(), 0) == ssize_t(packet.size()));
        const Result<Item> received = other.receive();
        REQUIRE_FALSE(received);
        CHECK(received.error().message.ends_with("was cut short"));
    }
}
