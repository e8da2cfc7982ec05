// Parent and child keep to one conversation, message by message, whatever there is to talk about.
#include "process/handshake.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

constexpr int kTopics = 8;

// One of all combinations. What belongs together in the product does here.
Topics combination(unsigned bits) {
    Topics topics{.joiner = (bits & 1) != 0,
                  .joiner_waits = (bits & 2) != 0,
                  .mark = (bits & 4) != 0,
                  .joiner_terminal = (bits & 8) != 0,
                  .host_hooks = (bits & 16) != 0,
                  .terminal = (bits & 32) != 0,
                  .takes_over = (bits & 64) != 0,
                  .waits_for_start = (bits & 128) != 0};
    if (!topics.joiner) topics.joiner_waits = topics.mark = topics.joiner_terminal = false;
    return topics;
}

// A clone of its process that goes on, as the child of who called for it. The cloner itself is done then.
[[noreturn]] void go_on_in_clone(ChildSide& side, const std::function<Result<void>()>& rest) {
    const Result<void> cloned = side.clone_sibling(0, [&] {
        if (const Result<void> done = rest(); !done) side.fail(done.error());
        ::_exit(0);
    });
    if (!cloned) side.fail(cloned.error());
    ::_exit(0);
}

Result<void> end_as_child(ChildSide& side, const Topics& topics) {
    if (topics.takes_over) TRY(side.await_go());
    if (topics.waits_for_start) return side.created();
    return side.ready();
}

Result<void> speak_as_child(ChildSide& side, const Topics& topics) {
    TRY(side.await_go());
    if (topics.host_hooks) TRY(side.mounted());
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (topics.terminal) TRY(side.terminal(null.get()));
    if (topics.takes_over) go_on_in_clone(side, [&] { return end_as_child(side, topics); });
    return end_as_child(side, topics);
}

Result<void> speak_as_joiner(ChildSide& side, const Topics& topics) {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (topics.joiner_waits) TRY(side.await_go());
    if (topics.mark) TRY(side.mark(null.get()));
    if (topics.joiner_terminal) TRY(side.terminal(null.get()));
    go_on_in_clone(side, [&] { return speak_as_child(side, topics); });
}

Result<void> speak_as_parent(ParentSide& side, const Topics& topics, Child child) {
    if (topics.joiner_waits) TRY(side.go());
    if (topics.mark) CHECK(TRY(side.mark()));
    if (topics.joiner_terminal) CHECK(TRY(side.terminal()));
    std::vector<Child> children;  // each cloned by the one before
    children.push_back(std::move(child));
    const auto take_over = [&]() -> Result<void> {
        children.push_back(TRY(side.born(children.back().pidfd.get())));
        return {};
    };
    if (topics.joiner) TRY(take_over());
    TRY(side.go(children.back().pid()));
    if (topics.host_hooks) {
        TRY(side.mounted());
        TRY(side.go());
    }
    if (topics.terminal) CHECK(TRY(side.terminal()));
    if (topics.takes_over) {
        TRY(take_over());
        TRY(side.go(children.back().pid()));
    }
    if (topics.waits_for_start) return side.created(-1);
    return side.ready();
}

// A child of this program, with the other side.
Child start_child(std::pair<ParentSide, ChildSide>& sides, const std::function<Result<void>(ChildSide&)>& speak) {
    int pidfd = -1;
    const pid_t pid = clone_into(0, -1, pidfd).value();
    if (pid == 0) {
        sides.first.close();
        if (const Result<void> done = speak(sides.second); !done) sides.second.fail(done.error());
        ::_exit(0);
    }
    sides.second.close();
    return {ChildGuard(pid), UniqueFd(pidfd)};
}

}  // namespace

TEST_CASE("handshake: both sides agree, with every combination of what there is to say") {
    for (unsigned bits = 0; bits < 1U << kTopics; ++bits) {
        CAPTURE(bits);
        const Topics topics = combination(bits);
        auto sides = ParentSide::make_pair(topics).value();
        Child child = start_child(sides, [&](ChildSide& side) {
            return topics.joiner ? speak_as_joiner(side, topics) : speak_as_child(side, topics);
        });
        const Result<void> spoken = speak_as_parent(sides.first, topics, std::move(child));
        CHECK_MESSAGE(spoken, spoken.error().message);
    }
}

TEST_CASE("handshake: a message at the wrong place is refused by who would say it, with both names") {
    auto sides = ParentSide::make_pair({.host_hooks = true}).value();
    const Result<void> early = sides.second.ready();
    REQUIRE_FALSE(early);
    CHECK(early.error().message == "pinfold's own process said 'ready' where 'go' was next");
    CHECK_FALSE(sides.first.terminal());
    REQUIRE(sides.first.go());
    CHECK_FALSE(sides.first.go());
    REQUIRE(sides.second.await_go());
    CHECK_FALSE(sides.second.terminal(0));
    CHECK_FALSE(sides.second.clone_sibling(0, [] { ::_exit(0); }));
}

TEST_CASE("handshake: a message at the wrong place is refused by who hears it, whatever it is") {
    constexpr Message kAll[] = {Message::born,     Message::go,      Message::mount, Message::mounted, Message::marked,
                                Message::terminal, Message::created, Message::ready, Message::ended};
    for (const Message said : kAll) {
        CAPTURE(int(said));
        {
            auto sides = ParentSide::make_pair({.host_hooks = true}).value();
            REQUIRE(sides.first.go());
            REQUIRE(sides.second.channel().send(said));
            CHECK(sides.first.mounted().has_value() == (said == Message::mounted));
        }
        {
            auto sides = ParentSide::make_pair({}).value();
            REQUIRE(sides.first.channel().send(said));
            CHECK(sides.second.await_go().has_value() == (said == Message::go));
        }
    }
}

// As somebody would say it who has taken the child's end of the channel.
TEST_CASE("handshake: a process that is not our child is not believed to be, whatever number is said") {
    const auto named = [](pid_t pid, int pidfd) {
        auto sides = ParentSide::make_pair({.joiner = true}).value();
        REQUIRE(sides.second.channel().send(Message::born, pid, pidfd));
        const Result<Child> born = sides.first.born(-1);
        if (born) return std::string("believed");
        return born.error().message;
    };
    const std::string forged = "a process was named as pinfold's own that is not: somebody in the container spoke";
    int number = -1;
    const pid_t child = clone_into(0, -1, number).value();
    if (child == 0) {
        for (;;) ::pause();
    }
    const UniqueFd pidfd(number);
    const UniqueFd own(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    CHECK(named(::getpid(), own.get()) == forged);
    CHECK(named(child, own.get()) == forged);
    CHECK(named(child, null.get()) == forged);
    CHECK(named(child, -1) == forged);
    CHECK(::kill(child, 0) == 0);
    CHECK(named(::getppid(), pidfd.get()) == "believed");  // and so it is ended with what holds it
    CHECK(::kill(child, 0) == -1);
}

// Who says less than was planned would not be looked at.
TEST_CASE("handshake: a process that does not wait as planned is not let go on") {
    for (unsigned bits = 0; bits < 16; ++bits) {
        CAPTURE(bits);
        const bool listens = (bits & 1) != 0, pauses = (bits & 2) != 0;
        ReadyChild planned{.listens = (bits & 4) != 0, .pauses = (bits & 8) != 0};
        if (listens == planned.listens && pauses == planned.pauses) continue;
        auto sides = ParentSide::make_pair({}).value();
        REQUIRE(sides.first.go());
        REQUIRE(sides.second.await_go());
        Readiness readiness;
        if (listens) readiness.listener.place.word = 1;
        if (pauses) readiness.before_exec.word = 1;
        REQUIRE(sides.second.ready(readiness));
        const Result<UniqueFd> payload = sides.first.payload(planned);
        REQUIRE_FALSE(payload);
        CHECK(payload.error().message ==
              "the process that was started does not wait as it was told to: somebody in the container spoke");
    }
}

TEST_CASE("handshake: further lines of what a child says do not look like pinfold's own") {
    auto sides = ParentSide::make_pair({}).value();
    REQUIRE(sides.first.go());
    sides.second.fail(Error{1, "failed\npinfold: warning\n", "a hint\nhint: another"});
    const Result<void> ready = sides.first.ready();
    REQUIRE_FALSE(ready);
    CHECK(ready.error().message == "failed\n  pinfold: warning\n  ");
    CHECK(ready.error().hint == "a hint\n  hint: another");
}

TEST_CASE("handshake: what a child says instead is why it failed; nothing is its death") {
    for (const bool speaks : {true, false}) {
        CAPTURE(speaks);
        auto sides = ParentSide::make_pair({}).value();
        Child child = start_child(sides, [&](ChildSide&) -> Result<void> {
            if (!speaks) ::_exit(9);
            return plain_error("mounts[3] /data: does not exist");
        });
        const Result<void> spoken = speak_as_parent(sides.first, {}, std::move(child));
        REQUIRE_FALSE(spoken);
        CHECK(spoken.error().message ==
              (speaks ? "mounts[3] /data: does not exist" : "the container's process was killed while it was set up"));
    }
}
