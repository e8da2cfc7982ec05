// Verbs on a container that runs: pause and resume, ps, update, events.
#include <signal.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include <algorithm>
#include <sstream>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

// A detached container that is gone at the end of the scope. Declare it after its Bundle.
class Detached {
public:
    explicit Detached(Bundle& bundle, const RunOptions& options = {}) : bundle_(bundle) {
        RunOptions detached = options;
        detached.args.insert(detached.args.end(), {"--detach", "--pid-file", bundle.host() / "pid"});
        const Outcome outcome = run(bundle, detached);
        REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
        pid_ = static_cast<pid_t>(std::stol(read_text(bundle.host() / "pid")));
    }
    ~Detached() { CHECK(verb(bundle_, {"delete", "--force", bundle_.id()}).status == 0); }
    Detached(const Detached&) = delete;
    Detached& operator=(const Detached&) = delete;

    pid_t pid() const { return pid_; }
    void end() const {
        const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        CHECK(::kill(pid_, SIGKILL) == 0);
        CHECK(await_readable(pidfd.get()));
    }

private:
    const Bundle& bundle_;
    pid_t pid_ = 0;
};

// Sees each write to a file.
class Watch {
public:
    explicit Watch(const fs::path& file) : changes_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
        REQUIRE(::inotify_add_watch(changes_.get(), file.c_str(), IN_MODIFY) >= 0);
    }
    // Whether it was written to since the last question.
    bool changed() const {
        char events[4096];
        bool any = false;
        while (::read(changes_.get(), events, sizeof events) > 0) any = true;
        return any;
    }
    bool await_change() const { return await_readable(changes_.get()); }

private:
    UniqueFd changes_;
};

void check_fails(const Ended& ended, const std::string& words) {
    CHECK(ended.status == 1);
    CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
}

std::vector<pid_t> pids_of(const Bundle& bundle) {
    const Ended ended = verb(bundle, {"ps", "--format", "json", bundle.id()});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    return json::parse(ended.out).get<std::vector<pid_t>>();
}

}  // namespace

#define NEEDS_GROUPS() \
    NEEDS_ROOT();      \
    PINFOLD_ONLY();    \
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine")

TEST_CASE("pause: the payload stops until it is resumed") {
    NEEDS_GROUPS();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/count", "0");
    bundle.probe({"count", "/data/count"});
    const Detached container(bundle);
    const Watch counter(bundle.rootfs() / "data/count");
    CHECK(counter.await_change());

    const Ended paused = verb(bundle, {"pause", bundle.id()});
    CHECK_MESSAGE(paused.status == 0, paused.err);
    counter.changed();
    CHECK(verb(bundle, {"ps", bundle.id()}).status == 0);  // time passes, and it can be looked at
    CHECK_FALSE(counter.changed());
    check_fails(verb(bundle, {"pause", bundle.id()}), "already paused");
    CHECK_FALSE(counter.changed());

    const Ended resumed = verb(bundle, {"resume", bundle.id()});
    CHECK_MESSAGE(resumed.status == 0, resumed.err);
    CHECK(counter.await_change());
    check_fails(verb(bundle, {"resume", bundle.id()}), "not paused");
}

TEST_CASE("pause: a paused container can be deleted by force") {
    NEEDS_GROUPS();
    Bundle bundle;
    bundle.probe({"sleep-forever"});
    const Detached container(bundle);
    CHECK(verb(bundle, {"pause", bundle.id()}).status == 0);
}

TEST_CASE("pause: only what runs and has a group") {
    NEEDS_GROUPS();
    {
        Bundle bundle;
        bundle.probe({"sleep-forever"});
        const Detached container(bundle);
        container.end();
        check_fails(verb(bundle, {"pause", bundle.id()}), "container not running");
        check_fails(verb(bundle, {"resume", bundle.id()}), "container not running");
    }
    Bundle bundle;
    check_fails(verb(bundle, {"pause", bundle.id()}), "does not exist");
    bundle.config["linux"].erase("resources");
    bundle.probe({"sleep-forever"});
    const Detached container(bundle, {.global = {"--cgroup-manager", "disabled"}});
    check_fails(verb(bundle, {"pause", bundle.id()}), "no cgroup of its own");
}

TEST_CASE("ps: every process of the container, by its pid on the host") {
    NEEDS_GROUPS();
    Bundle bundle;
    bundle.probe_each({{"orphan"}, {"orphan"}, {"sleep-forever"}});
    const auto running = start(bundle, {.args = {"--pid-file", bundle.host() / "pid"}});
    while (running->read_line() != "READY") continue;
    const std::vector<pid_t> pids = pids_of(bundle);
    CHECK(pids.size() == 3);
    CHECK(pids.front() == std::stol(read_text(bundle.host() / "pid")));
    for (const pid_t pid : pids) CHECK(read_text("/proc/" + std::to_string(pid) + "/comm") == "probe\n");

    // Only ps(1)'s lines of these, with the heading.
    for (const std::vector<std::string>& arguments :
         std::vector<std::vector<std::string>>{{}, {"-e", "-o", "pid,comm"}}) {
        std::vector<std::string> words = {"ps", bundle.id()};
        words.insert(words.end(), arguments.begin(), arguments.end());
        const Ended table = verb(bundle, words);
        CHECK_MESSAGE(table.status == 0, table.err);
        CHECK(std::count(table.out.begin(), table.out.end(), '\n') == 4);
        CHECK(table.out.find("PID") < table.out.find('\n'));
        for (const pid_t pid : pids) CHECK(table.out.find(std::to_string(pid)) != std::string::npos);
    }
    check_fails(verb(bundle, {"ps", bundle.id(), "-e", "-o", "comm"}), "no PID column");
    check_fails(verb(bundle, {"ps", bundle.id(), "--no-such-option"}), "ps --no-such-option failed: ");
    running->signal(SIGKILL);
    running->finish();
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

TEST_CASE("ps: a stopped container has no processes") {
    NEEDS_GROUPS();
    Bundle bundle;
    bundle.probe({"sleep-forever"});
    const Detached container(bundle);
    CHECK(pids_of(bundle) == std::vector<pid_t>{container.pid()});
    container.end();
    const Ended list = verb(bundle, {"ps", "--format", "json", bundle.id()});
    CHECK(list.status == 0);
    CHECK(list.out == "[]\n");
    const Ended table = verb(bundle, {"ps", bundle.id()});
    CHECK(table.status == 0);
    CHECK(std::count(table.out.begin(), table.out.end(), '\n') == 1);
    check_fails(verb(bundle, {"ps", "no-such-container"}), "does not exist");
}

TEST_CASE("ps: without a group, the first process alone is known") {
    NEEDS_GROUPS();
    Bundle bundle;
    bundle.config["linux"].erase("resources");
    bundle.probe({"sleep-forever"});
    const Detached container(bundle, {.global = {"--cgroup-manager", "disabled"}});
    CHECK(pids_of(bundle) == std::vector<pid_t>{container.pid()});
    container.end();
    CHECK(pids_of(bundle).empty());
}
