// Verbs on a container that runs: pause and resume, ps, update, events.
#include <signal.h>
#include <sys/inotify.h>
#include <sys/syscall.h>

#include <algorithm>
#include <sstream>

#include "harness.hpp"
#include "support/source_root.hpp"
#include "turns.hpp"

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

// Until the process sleeps in poll(), as `events` does once it watches the group.
bool await_watching(pid_t pid) {
#ifdef SYS_poll
    const std::string poll = std::to_string(SYS_poll) + " ";
#else
    const std::string poll = std::to_string(SYS_ppoll) + " ";
#endif
    const auto end = std::chrono::steady_clock::now() + patience();
    while (std::chrono::steady_clock::now() < end) {
        if (read_text("/proc/" + std::to_string(pid) + "/syscall").rfind(poll, 0) == 0) return true;
    }
    return false;
}

// One that the default rules deny.
void add_device(Bundle& bundle) {
    bundle.config["linux"]["devices"] =
        json::array({{{"path", "/dev/given"}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"fileMode", 0666}}});
}

}  // namespace

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
    check_fails(verb(bundle, {"pause", bundle.id()}), "is paused");
    CHECK_FALSE(counter.changed());

    const Ended resumed = verb(bundle, {"resume", bundle.id()});
    CHECK_MESSAGE(resumed.status == 0, resumed.err);
    CHECK(counter.await_change());
    check_fails(verb(bundle, {"resume", bundle.id()}), "only a paused container can be resumed");
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
        check_fails(verb(bundle, {"pause", bundle.id()}), "is stopped");
        check_fails(verb(bundle, {"resume", bundle.id()}), "is stopped");
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

TEST_CASE("update: a limit of processes") {
    NEEDS_GROUPS();
    if (!has_controller("pids")) SKIP_TEST("no pids controller in cgroup v2");
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}, {"fork", "20"}, {"wait-signal"}, {"fork", "20"}, {"wait-signal"}});
    check_ok(payload.update({"--pids-limit", "5"}));
    CHECK(payload.go_on()["children"] == 4);
    payload.await_ready();
    check_ok(payload.update({"--pids-limit", "-1"}));
    CHECK(payload.go_on()["children"] == 20);
    payload.await_ready();
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("update: a memory limit below what is used ends the payload") {
    NEEDS_GROUPS();
    if (!has_controller("memory")) SKIP_TEST("no memory controller in cgroup v2");
    Bundle bundle;
    // From the beginning: what is used before the group has the controller is not counted there.
    bundle.config["linux"]["resources"]["memory"]["limit"] = 1 << 30;
    const Turns payload(bundle, {{"alloc", "64"}, {"wait-signal"}});
    check_ok(payload.update({"--memory", "512M", "--memory-swap", "512M"}));
    CHECK(payload.group_file("memory.max") == std::to_string(512 << 20));
    check_ok(payload.update({"--memory", "32M", "--memory-swap", "32M"}));
    CHECK(payload.end() == 128 + SIGKILL);
}

TEST_CASE("update: memory and swap") {
    NEEDS_GROUPS();
    if (!has_controller("memory")) SKIP_TEST("no memory controller in cgroup v2");
    Bundle bundle;
    bundle.config["linux"]["resources"]["memory"] = {{"limit", 64 << 20}, {"swap", 96 << 20}};
    const Turns payload(bundle, {{"wait-signal"}});
    check_ok(payload.update({"--memory", "80M"}));
    CHECK(payload.group_file("memory.max") == std::to_string(80 << 20));
    CHECK(payload.group_file("memory.swap.max") == std::to_string(16 << 20));
    check_ok(payload.update({"--memory-swap", "100M"}));
    CHECK(payload.group_file("memory.swap.max") == std::to_string(20 << 20));
    check_fails(payload.update({"--memory", "200M"}), "--memory-swap");
    check_ok(payload.update({"--memory", "-1"}));
    CHECK(payload.group_file("memory.max") == "max");
    CHECK(payload.group_file("memory.swap.max") == "max");
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("update: a processor quota") {
    NEEDS_GROUPS();
    if (!has_controller("cpu")) SKIP_TEST("no cpu controller in cgroup v2");
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}, {"burn", "60"}});
    check_ok(payload.update({"--cpu-period", "50000"}));
    check_ok(payload.update({"--cpu-quota", "5000"}));
    CHECK(payload.group_file("cpu.max") == "5000 50000");
    // A tenth of a processor, as in the test of a new container's quota.
    CHECK(payload.go_on()["wall_ms"].get<int>() >= 300);
    CHECK(payload.end() == 0);
}

TEST_CASE("update: burst and quota change together, weight and idleness one after the other") {
    NEEDS_GROUPS();
    if (!has_controller("cpu")) SKIP_TEST("no cpu controller in cgroup v2");
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}});
    check_ok(payload.update({"--cpu-quota", "50000", "--cpu-burst", "40000"}));
    CHECK(payload.group_file("cpu.max.burst") == "40000");
    check_ok(payload.update({"--cpu-quota", "20000", "--cpu-burst", "10000"}));
    CHECK(payload.group_file("cpu.max") == "20000 100000");
    check_ok(payload.update({"--cpu-quota", "5000", "--cpu-burst", "0"}));
    CHECK(payload.group_file("cpu.max.burst") == "0");
    check_ok(payload.update({"--cpu-share", "512", "--cpu-idle", "1"}));
    CHECK(payload.group_file("cpu.idle") == "1");
    check_ok(payload.update({"--cpu-share", "2048", "--cpu-idle", "0"}));
    CHECK(payload.group_file("cpu.weight") == "174");
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("update: processors and memory nodes") {
    NEEDS_GROUPS();
    if (!has_controller("cpuset")) SKIP_TEST("no cpuset controller in cgroup v2");
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}});
    check_ok(payload.update({"--cpuset-cpus", "0", "--cpuset-mems", "0"}));
    CHECK(payload.group_file("cpuset.cpus") == "0");
    check_fails(payload.update({"--cpuset-cpus", "none"}), "linux.resources.cpu.cpus");
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("update: a weight for input and output") {
    NEEDS_GROUPS();
    if (!has_controller("io")) SKIP_TEST("no io controller in cgroup v2");
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}});
    check_ok(payload.update({"--blkio-weight", "1000"}));
    CHECK(payload.group_file("io.weight") == "default 10000");
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("update: what cannot be done as a whole is not done at all") {
    NEEDS_GROUPS();
    if (!has_controller("memory") || !has_controller("cpu")) SKIP_TEST("no memory and cpu controllers in cgroup v2");
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}});
    check_ok(payload.update({"--memory", "100M", "--cpu-quota", "50000"}));
    // Less than a millisecond is too little for the kernel.
    check_fails(payload.update({"--memory", "200M", "--pids-limit", "7", "--cpu-quota", "500"}),
                "linux.resources.cpu.quota");
    CHECK(payload.group_file("memory.max") == std::to_string(100 << 20));
    CHECK(payload.group_file("pids.max") == "max");
    CHECK(payload.group_file("cpu.max") == "50000 100000");
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("update: the documents of engines, from a file and from standard input") {
    NEEDS_GROUPS();
    if (!has_controller("memory") || !has_controller("pids")) SKIP_TEST("no memory and pids controllers in cgroup v2");
    const fs::path documents = pinfold::testing::source_root() / "tests/data/configs";
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}});
    const auto check_memory = [&](const Ended& ended, int megabytes, int swap_megabytes) {
        check_ok(ended);
        CHECK(payload.group_file("memory.max") == std::to_string(megabytes << 20));
        CHECK(payload.group_file("memory.swap.max") == std::to_string(swap_megabytes << 20));
    };
    check_memory(payload.update({"-r", "-"}, read_text(documents / "update-stdin-docker.json")), 128, 128);
    CHECK(payload.group_file("pids.max") == "33");
    CHECK(payload.group_file("cpu.max") == "25000 100000");
    check_memory(payload.update({"--resources", "-"}, read_text(documents / "update-stdin-cri.json")), 128, 0);
    check_memory(payload.update({"--resources=" + (documents / "update-resources-podman.json").string()}), 128, 128);
    // An option on top of a document.
    check_memory(payload.update({"-r", "-", "--memory", "64M"}, read_text(documents / "update-stdin-cri.json")), 64,
                 64);
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("update: devices") {
    NEEDS_GROUPS();
    Bundle bundle;
    add_device(bundle);
    const Command open = {"open", "/dev/given", "ro"};
    const Turns payload(bundle, {{"wait-signal"}, open, {"wait-signal"}, open, {"wait-signal"}, open});
    check_ok(payload.update({"-r", "-"}, R"({"devices": []})"));
    CHECK(payload.go_on()["errno"] == "EPERM");
    payload.await_ready();
    check_ok(payload.update({"-r", "-"}, R"({"devices": [{"allow": false, "access": "rwm"},
        {"allow": true, "type": "c", "major": 10, "minor": 251, "access": "r"}]})"));
    CHECK(payload.go_on()["errno"] != "EPERM");
    payload.await_ready();
    check_ok(payload.update({"-r", "-"}, R"({"devices": [{"allow": false, "access": "rwm"}]})"));
    CHECK(payload.go_on()["errno"] == "EPERM");
    CHECK(payload.end() == 0);
}

TEST_CASE("update: what is wrong is said before anything is done") {
    NEEDS_GROUPS();
    Bundle bundle;
    bundle.probe({"sleep-forever"});
    const Detached container(bundle);
    const auto update = [&](const std::vector<std::string>& words, const std::string& input = {}) {
        std::vector<std::string> all = {"update", bundle.id()};
        all.insert(all.end(), words.begin(), words.end());
        return run_program(bundle.verb(all), {.input = input});
    };
    check_fails(update({"--memory", "plenty"}), "--memory: found 'plenty'");
    check_fails(update({"-r", "-"}, R"({"cpu": {"quota": 10, "burst": 20}, "memory": {"limit": "1M"}})"), "cpu.burst");
    check_fails(update({"-r", "-"}, R"({"cpu": {"realtimeRuntime": 10}})"),
                "linux.resources.cpu.realtimeRuntime: cgroup v2 has no such setting");
    check_fails(update({"--cpu-rt-period", "1000"}), "linux.resources.cpu.realtimePeriod");
    check_fails(update({"--kernel-memory", "1M"}), "linux.resources.memory.kernel: cgroup v2 has no such setting");
    check_ok(update({"--kernel-memory", "-1", "--kernel-memory-tcp", "-1"}));
    check_fails(update({"-r", "-"}, "{"), "standard input");
    check_fails(update({"-r", "/nowhere.json"}), "/nowhere.json");
    check_ok(update({"-r", "-"},
                    R"({"memory": {"limit": 0, "kernel": 0}, "cpu": {"shares": 0}, "blockIO": {"weight": 0}})"));
    check_ok(update({}));
    if (!has_controller("memory")) {
        check_fails(update({"--memory", "64M"}), "linux.resources.memory.limit: this host's cgroup v2 at ");
        check_ok(update({"--memory", "-1"}));  // it has no limit
    }
    container.end();
    check_fails(update({"--memory", "-1"}), "container not running");
}

TEST_CASE("events: statistics once") {
    NEEDS_GROUPS();
    Bundle bundle;
    const Turns payload(bundle, {{"burn", "20"}, {"wait-signal"}});
    const Ended ended = verb(bundle, {"events", "--stats", bundle.id()});
    check_ok(ended);
    CHECK(std::count(ended.out.begin(), ended.out.end(), '\n') == 1);
    const json event = json::parse(ended.out, nullptr, false);
    CHECK(event["type"] == "stats");
    CHECK(event["id"] == bundle.id());
    const json& data = event["data"];
    for (const char* part : {"cpu", "cpuset", "memory", "pids", "blkio", "hugetlb", "intel_rdt"}) {
        CHECK_MESSAGE(data[part].is_object(), part);
    }
    CHECK(data["network_interfaces"].is_null());
    CHECK(data["cpu"]["usage"]["total"].get<uint64_t>() >= 20'000'000);  // nanoseconds
    CHECK(data["cpu"]["usage"]["user"].is_number());
    CHECK(data["cpu"].contains("psi") == !payload.group_file("cpu.pressure").empty());
    if (has_controller("memory")) {
        // The controller comes with the first limit.
        check_ok(payload.update({"--memory", "64M", "--pids-limit", "7"}));
        const json later = json::parse(verb(bundle, {"events", "--stats", bundle.id()}).out, nullptr, false)["data"];
        CHECK(later["memory"]["usage"]["limit"] == 64 << 20);
        CHECK(later["memory"]["raw"].contains("anon"));
        CHECK(later["pids"]["limit"] == 7);
        CHECK(later["pids"]["current"] == 1);
    }
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("events: statistics again and again until the container ends") {
    NEEDS_GROUPS();
    Bundle bundle;
    const Turns payload(bundle, {{"wait-signal"}});
    Process events(bundle.verb({"events", "--interval", "10ms", bundle.id()}), {});
    for (int i = 0; i < 3; ++i) CHECK(json::parse(events.read_line())["type"] == "stats");
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
    check_ok(events.finish());

    // The end is told at once, not with the next statistics.
    const Turns another(bundle, {{"wait-signal"}});
    Process watching(bundle.verb({"events", "--interval", "1h", bundle.id()}), {});
    CHECK(await_watching(watching.pid()));
    another.go_on_without_answer();
    CHECK(another.end() == 0);
    const Ended ended = watching.finish();
    check_ok(ended);
    CHECK(ended.out == "");
}

TEST_CASE("events: a kill for want of memory") {
    NEEDS_GROUPS();
    if (!has_controller("memory")) SKIP_TEST("no memory controller in cgroup v2");
    Bundle bundle;
    bundle.config["linux"]["resources"]["memory"] = {{"limit", 32 << 20}, {"swap", 32 << 20}};
    const Turns payload(bundle, {{"wait-signal"}, {"alloc", "64"}}, {.args = {"--keep"}});
    Process events(bundle.verb({"events", "--interval", "1h", bundle.id()}), {});
    CHECK(await_watching(events.pid()));
    payload.go_on_without_answer();
    CHECK(payload.end() == 128 + SIGKILL);
    const Ended ended = events.finish();
    check_ok(ended);
    CHECK(json::parse(ended.out, nullptr, false) == json{{"type", "oom"}, {"id", bundle.id()}});
    CHECK(verb(bundle, {"delete", bundle.id()}).status == 0);
}

TEST_CASE("events: what is refused") {
    NEEDS_GROUPS();
    Bundle bundle;
    check_fails(verb(bundle, {"events", bundle.id()}), "does not exist");
    bundle.probe({"sleep-forever"});
    const Detached container(bundle);
    for (const char* wrong : {"0s", "-1s", "5", "soon"}) {
        check_fails(verb(bundle, {"events", std::string("--interval=") + wrong, bundle.id()}), "--interval: found");
    }
    container.end();
    check_fails(verb(bundle, {"events", bundle.id()}), "container not running");
    check_fails(verb(bundle, {"events", "--stats", bundle.id()}), "container not running");
}
