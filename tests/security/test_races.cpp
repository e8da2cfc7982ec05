// Two callers at the same container at the same moment: each succeeds or is told why not, and nothing is left.
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "harness.hpp"
#include "support/tried.hpp"

namespace pinfold::integration {

namespace {

using Words = std::vector<std::string>;

// The second caller comes later in each round, by steps that go through all that the first one does.
int rounds() { return testing::slow_machine() ? 3 : 25; }

void come_later(int round) {
    const timespec delay{0, round * (testing::slow_machine() ? 40'000'000L : 400'000L)};
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &delay, nullptr);
}

Words create_words(const Bundle& bundle) { return {"create", "--bundle", bundle.path(), bundle.id()}; }

bool one_of(const std::string& text, const Words& words) {
    return std::ranges::any_of(words, [&](const std::string& word) { return text.find(word) != std::string::npos; });
}

// One sentence of pinfold that has one of these words in it; a hint may follow.
bool told_why(const Ended& ended, const Words& words) {
    const std::string sentence = ended.err.substr(0, ended.err.find('\n'));
    const std::string rest = ended.err.substr(std::min(ended.err.size(), sentence.size() + 1));
    return sentence.starts_with("pinfold: ") && one_of(sentence, words) && (rest.empty() || rest.starts_with("hint: "));
}

// How a caller may end, besides well: with a reason, or with its payload.
struct Refusals {
    Words reasons;
    int status = 1;
    bool killed = false;  // the payload was, silently
};

void check_ended(const std::string& who, const Ended& ended, const Refusals& refusals) {
    INFO(who, " ended with ", ended.status, ": ", ended.err);
    const bool well = ended.status == 0 && ended.err.empty();
    const bool refused = ended.status == refusals.status && told_why(ended, refusals.reasons);
    const bool killed = refusals.killed && ended.status == 128 + SIGKILL && ended.err.empty();
    WITHSTANDS(who, well || refused || killed);
}

// After a race: what there is can be removed, and is gone then.
void clear_away(const Bundle& bundle) {
    const Ended deleted = verb(bundle, {"delete", "--force", bundle.id()});
    CHECK_MESSAGE(deleted.status == 0, deleted.err);
    CHECK_FALSE(fs::exists(bundle.state_root() / bundle.id()));
}

void must(const Bundle& bundle, const Words& words) {
    const Ended ended = verb(bundle, words);
    REQUIRE_MESSAGE(ended.status == 0, words.front() << ": " << ended.err);
}

void make(Bundle& bundle, Container::As as) {
    must(bundle, create_words(bundle));
    if (as == Container::As::running) must(bundle, {"start", bundle.id()});
}

// A container in some state, then two callers; prepared and cleared away in each round.
struct Race {
    const char* name;
    std::optional<Container::As> before;
    Words first;
    Refusals first_refusals;
    Words second;
    Refusals second_refusals;
};

void hold(Bundle& bundle, const Race& race) {
    for (int round = 0; round < rounds(); ++round) {
        INFO(std::string(race.name), ", round ", round);
        if (race.before) make(bundle, *race.before);
        Process first(bundle.verb(race.first), {});
        come_later(round);
        Process second(bundle.verb(race.second), {});
        const Ended second_ended = second.finish();
        check_ended(race.first.front(), first.finish(), race.first_refusals);
        check_ended(race.second.front(), second_ended, race.second_refusals);
        clear_away(bundle);
    }
}

void await_name(const fs::path& directory, const std::string& name) {
    const UniqueFd changes(::inotify_init1(IN_CLOEXEC));
    REQUIRE(::inotify_add_watch(changes.get(), directory.c_str(), IN_CREATE) >= 0);
    while (!fs::exists(directory / name)) {
        std::array<char, 4096> events{};
        REQUIRE(await_readable(changes.get()));
        REQUIRE(::read(changes.get(), events.data(), events.size()) > 0);
    }
}

}  // namespace

TEST_CASE("races: one id, created twice at once") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle).write_config();
    for (int round = 0; round < rounds(); ++round) {
        Process one(bundle.verb(create_words(bundle)), {});
        come_later(round);
        Process other(bundle.verb(create_words(bundle)), {});
        const Ended first = one.finish();
        const Ended second = other.finish();
        check_ended("create", first, {{"already exists"}});
        check_ended("create", second, {{"already exists"}});
        CHECK((first.status == 0) != (second.status == 0));
        must(bundle, {"start", bundle.id()});
        clear_away(bundle);
    }
}

TEST_CASE("races: a container that is deleted, and somebody else at it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle).write_config();
    const std::string& id = bundle.id();
    const Words create = create_words(bundle);
    const Words exec = {"exec", id, "/probe", "stat", "/"};
    const Words force = {"delete", "--force", id};
    const Refusals never = {};
    const Refusals lost = {{"was deleted while it was made"}};
    const Refusals gone = {{"does not exist"}};
    const Refusals ended = {{"does not exist", "container not running", "is stopped"}};
    const Refusals killed = {
        {"does not exist", "container not running", "is stopped", "was killed while it was set up"}};
    const Refusals not_now = {{"does not exist", "is running"}};
    using As = Container::As;
    const Race races[] = {
        {"delete during create", {}, create, lost, {"delete", id}, gone},
        {"forced delete during create", {}, create, lost, force, never},
        {"delete during start", As::created, {"start", id}, ended, {"delete", id}, not_now},
        {"forced delete during start", As::created, {"start", id}, killed, force, never},
        {"two deletes", As::created, {"delete", id}, gone, {"delete", id}, gone},
        {"two forced deletes", As::running, force, never, force, never},
        {"forced delete during update", As::running, {"update", "--pids-limit", "-1", id}, ended, force, never},
        {"forced delete during pause", As::running, {"pause", id}, ended, force, never},
        {"forced delete during exec",
         As::running,
         exec,
         {{"does not exist", "container not running", "is stopped", "was killed while it was set up"}, 255, true},
         force,
         never},
        {"kill during forced delete", As::running, force, never, {"kill", id, "KILL"}, ended},
        {"state during forced delete", As::running, force, never, {"state", id}, gone},
        {"ps during forced delete", As::running, force, never, {"ps", "--format", "json", id}, gone},
        {"list during forced delete", As::running, force, never, {"list"}, never},
    };
    for (const Race& race : races) hold(bundle, race);
}

TEST_CASE("races: an id that is deleted and taken by another while its first owner has made no more than a directory") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle).write_config();
    Words slow = {
        "/usr/bin/strace", "-o", bundle.host() / "trace", "-e",
        "inject=mkdirat:delay_exit=" + std::string(testing::slow_machine() ? "20000000" : "700000") + ":when=1"};
    const Words create = bundle.verb(create_words(bundle));
    slow.insert(slow.end(), create.begin(), create.end());
    Process first(slow, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
    await_name(bundle.state_root(), bundle.id());
    must(bundle, {"delete", "--force", bundle.id()});
    make(bundle, Container::As::running);
    check_ended("create", first.finish(), {{"was deleted while it was made"}});
    WITHSTANDS("the second owner", verb(bundle, {"kill", bundle.id(), "0"}).status == 0);
    clear_away(bundle);
}

TEST_CASE("races: a run that is held up while it removes its state, which somebody else removes then") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"stat", "/"}).write_config();
    // Held up between the opening of its directory and the reading of it.
    Words slow = {"/usr/bin/strace", "-o", bundle.host() / "trace", "-e",
                  "inject=getdents64:delay_enter=" + std::string(testing::slow_machine() ? "20000000" : "700000")};
    const Words run = bundle.verb({"run", "--bundle", bundle.path(), bundle.id()});
    slow.insert(slow.end(), run.begin(), run.end());
    Process held_up(slow, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
    await_name(bundle.state_root(), bundle.id());
    await_name(bundle.state_root() / bundle.id(), "init");
    Ended state = verb(bundle, {"state", bundle.id()});
    while (state.status == 0 && !one_of(state.out, {"stopped"})) state = verb(bundle, {"state", bundle.id()});
    CHECK_MESSAGE(state.status == 0, state.err);
    must(bundle, {"delete", "--force", bundle.id()});
    check_ended("run", held_up.finish(), {});
}

TEST_CASE("races: run, and a forced delete at any moment of it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"burn", "3"}).write_config();
    const Words run = {"run", "--bundle", bundle.path(), bundle.id()};
    const Words force = {"delete", "--force", bundle.id()};
    hold(bundle,
         {"forced delete during run", {}, run, {{"was deleted while it was made", "was killed"}, 1, true}, force, {}});
}

TEST_CASE("races: a container that is made or started, and somebody else at it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle).write_config();
    const std::string& id = bundle.id();
    const Refusals never = {};
    using As = Container::As;
    const Race races[] = {
        {"kill during create",
         {},
         create_words(bundle),
         never,
         {"kill", id, "KILL"},
         {{"does not exist", "container not running"}}},
        {"list during create", {}, create_words(bundle), never, {"list"}, never},
        {"two starts", As::created, {"start", id}, {{"is running"}}, {"start", id}, {{"is running"}}},
    };
    for (const Race& race : races) hold(bundle, race);
}

TEST_CASE("races: exec while its container is paused and resumed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    waiting(bundle).write_config();
    const std::string& id = bundle.id();
    make(bundle, Container::As::running);
    for (int round = 0; round < 2 * rounds(); ++round) {
        CAPTURE(round);
        Process exec(bundle.verb({"exec", id, "/probe", "stat", "/"}), {});
        come_later(round / 2);
        must(bundle, {"pause", id});
        must(bundle, {"resume", id});
        check_ended("exec", exec.finish(), {{"is paused"}, 255});
    }
    clear_away(bundle);
}

TEST_CASE("races: who changes a container waits for the other one to be done") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"wait-signal"});
    const std::string reached = bundle.host() / "reached";
    const std::string gate = bundle.host() / "gate";
    REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
    bundle.config["hooks"]["prestart"] =
        json::array({{{"path", "/bin/sh"}, {"args", {"sh", "-c", "echo > " + reached + "; read line < " + gate}}}});
    bundle.write_config();
    Process creating(bundle.verb(create_words(bundle)), {});
    await_file(reached);
    Process deleting(bundle.verb({"delete", "--force", bundle.id()}), {});
    write_text(gate, "go\n");
    const Ended created = creating.finish();
    CHECK_MESSAGE(created.status == 0, created.err);
    CHECK(deleting.finish().status == 0);
    CHECK_FALSE(fs::exists(bundle.state_root() / bundle.id()));
}

// pinfold run, held up for a moment after it has made its directory, which somebody else then locks.
static std::vector<std::string> run_slowly(const Bundle& bundle) {
    std::vector<std::string> line = {
        "/usr/bin/strace", "-qq", "-o", "/dev/null", "-e", "trace=mkdirat", "-e", "inject=mkdirat:delay_exit=1000000"};
    for (const std::string& word : bundle.command_line({})) line.push_back(word);
    return line;
}

static UniqueFd lock_dir(const fs::path& path) {
    UniqueFd dir(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    REQUIRE(::flock(dir.get(), LOCK_EX | LOCK_NB) == 0);
    return dir;
}

TEST_CASE("races: a lock that is never let go of ends the wait for it, whatever signals are blocked") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace");
    const std::string us = ", by process " + std::to_string(::getpid()) + " ('security-races')";
    Bundle held, fresh;
    waiting(held).write_config();
    const Container container(held, Container::As::created);
    const UniqueFd lock = lock_dir(held.state_root() / held.id());
    std::vector<int> all;
    for (int number = 1; number < NSIG; ++number) all.push_back(number);
    Process deleting(held.verb({"delete", "--force", held.id()}), {.blocked_signals = all});
    Process starting(held.verb({"start", held.id()}), {.ignored_signals = {SIGALRM}});

    waiting(fresh).write_config();
    fs::create_directory(fresh.state_root());
    const UniqueFd changes(::inotify_init1(IN_CLOEXEC));
    REQUIRE(::inotify_add_watch(changes.get(), fresh.state_root().c_str(), IN_CREATE) >= 0);
    Process running(run_slowly(fresh), {});
    REQUIRE(await_readable(changes.get()));
    const UniqueFd other = lock_dir(fresh.state_root() / fresh.id());

    const std::string log = held.host() / "log";
    write_text(log, "");
    const UniqueFd log_lock = lock_dir(log);
    Process logging(held.verb({"--audit", log, "kill", "nosuch"}), {});

    check_refused(deleting.finish(), "container '" + held.id() + "' is still held after 10 s" + us);
    check_refused(starting.finish(), "container '" + held.id() + "' is still held after 10 s" + us);
    check_refused(running.finish(), "container '" + fresh.id() + "' is still held after 10 s" + us);
    check_refused(logging.finish(), log + " is still held after 10 s" + us);
    CHECK(container.status() == "stopped");  // by force it is killed at once, and not removed
}

// In a process of its own, which must not end the test and what belongs to it: an assertion that fails there is caught.
static bool live_and_die(const Bundle& bundle, const std::string& id, int cycles) try {
    bool good = true;
    for (int cycle = 0; cycle < cycles && good; ++cycle) {
        good = run_program(bundle.verb({"create", "--bundle", bundle.path(), id})).status == 0 &&
               run_program(bundle.verb({"start", id})).status == 0 &&
               run_program(bundle.verb({"kill", id, "KILL"})).status == 0;
        // Killed is not yet ended.
        while (good && run_program(bundle.verb({"delete", id})).status != 0) {
            good = run_program(bundle.verb({"state", id})).status == 0;
        }
    }
    return good;
} catch (...) {
    return false;
}

TEST_CASE("races: two hundred cycles by eight processes at once leave nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const int cycles = testing::slow_machine() ? 3 : 25;
    Bundle bundle;
    waiting(bundle).write_config();
    std::vector<pid_t> workers;
    for (int worker = 0; worker < 8; ++worker) {
        const pid_t pid = ::fork();
        if (pid != 0) {
            workers.push_back(pid);
            continue;
        }
        ::_exit(live_and_die(bundle, bundle.id() + "-" + std::to_string(worker), cycles) ? 0 : 1);
    }
    for (const pid_t worker : workers) {
        int status = -1;
        CHECK(::waitpid(worker, &status, 0) == worker);
        CHECK(status == 0);
    }
    for (const auto& entry : fs::directory_iterator(bundle.state_root())) {
        CHECK_MESSAGE(entry.path().filename() == ".seccomp", entry.path().string());
    }
    for (int worker = 0; worker < 8; ++worker) {
        CHECK(cgroups_named(bundle.id() + "-" + std::to_string(worker)).empty());
    }
}

}  // namespace pinfold::integration
