// Packets between two processes, over the real socket.
#include "process/spawn.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("channel: messages arrive in order, and then the end") {
    auto [parent, child] = Channel::make_pair().value();
    REQUIRE(parent.send(Message::go));
    CHECK(child.receive().value()->message == Message::go);
    REQUIRE(child.send(Message::ready));
    child.close();
    CHECK(parent.receive().value()->message == Message::ready);
    CHECK_FALSE(parent.receive().value().has_value());
}

TEST_CASE("channel: a failure keeps its words, however long") {
    auto [parent, child] = Channel::make_pair().value();
    child.send_failure(Error{2, "mounts[3] /data: does not exist", "make it"});
    const auto packet = parent.receive().value();
    REQUIRE(packet);
    CHECK(packet->message == Message::failed);
    CHECK(packet->error.code == 2);
    CHECK(packet->error.message == "mounts[3] /data: does not exist");
    CHECK(packet->error.hint == "make it");
    child.send_failure(Error{1, std::string(100000, 'm'), std::string(100000, 'h')});
    const auto cut = parent.receive().value();
    REQUIRE(cut);
    CHECK(cut->error.message == std::string(4096, 'm'));
    CHECK(cut->error.hint == std::string(4096, 'h'));
}

TEST_CASE("channel: descriptors travel, and are closed on exec") {
    auto [parent, child] = Channel::make_pair().value();
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    REQUIRE(child.send(Message::terminal, 0, writer.get()));
    writer.reset();
    const auto packet = parent.receive().value();
    REQUIRE(packet);
    CHECK(packet->message == Message::terminal);
    CHECK(::fcntl(packet->fd.get(), F_GETFD) == FD_CLOEXEC);
    CHECK(::write(packet->fd.get(), "x", 1) == 1);
    char byte = 0;
    CHECK(::read(reader.get(), &byte, 1) == 1);
    REQUIRE(child.send(Message::born, 1234, reader.get()));
    const auto born = parent.receive().value();
    REQUIRE(born);
    CHECK(born->pid == 1234);
    CHECK(born->fd);
}

TEST_CASE("channel: what was said last is heard, also of who has not listened") {
    auto [parent, child] = Channel::make_pair().value();
    REQUIRE(parent.send(Message::go));
    child.send_failure(Error{2, "mounts[3] /data: does not exist", ""});
    child.close();  // with the message unread
    const auto packet = parent.receive().value();
    REQUIRE(packet);
    CHECK(packet->error.message == "mounts[3] /data: does not exist");
    CHECK_FALSE(parent.receive().value().has_value());
}

TEST_CASE("channel: who died before it was told to go on has the last word") {
    auto ends = Channel::make_pair();
    REQUIRE(ends);
    ends->second.send_failure(Error{ENOENT, "mounts: gone", ""});
    ends->second.close();
    CHECK(ends->first.send(Message::go));
    const auto last = ends->first.receive();
    REQUIRE((last && *last));
    CHECK((*last)->message == Message::failed);
    CHECK_FALSE(ends->first.send(Message::ready));
}

TEST_CASE("channel: the other side's death is an end, not an error") {
    auto [parent, child] = Channel::make_pair().value();
    REQUIRE(parent.send(Message::go));
    child.close();  // with the message unread
    CHECK_FALSE(parent.receive().value().has_value());
}

// In a container with CAP_SYS_PTRACE, somebody may take the channel of what was cloned, and be the first to speak.
TEST_CASE("channel: what was cloned is ended and reaped, also where somebody else has spoken first") {
    auto [parent, child] = Channel::make_pair().value();
    REQUIRE(child.send(Message::born, ::getpid()));
    REQUIRE(child.send(Message::ready));
    int pidfd = -1;
    const Result<pid_t> cloner = clone_into(0, -1, pidfd);
    REQUIRE(cloner);
    if (*cloner == 0) {
        const auto cloned = clone_as_sibling(0, child, [] { ::pause(); });
        ::_exit(cloned ? 0 : 1);
    }
    const UniqueFd held(pidfd);
    const auto born = expect_born(parent, held.get());
    REQUIRE_FALSE(born);
    CHECK(born.error().message.find("somebody in the container spoke") != std::string::npos);
    int status = -1;
    CHECK(::waitpid(*cloner, &status, 0) == *cloner);
    CHECK(status == 0);
    CHECK(::waitpid(-1, nullptr, WNOHANG | __WALL) == -1);
    CHECK(errno == ECHILD);
}
