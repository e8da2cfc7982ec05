// Many containers at once, and many in a row: afterwards the machine is as it was before.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>

#include "sandbox.hpp"
#include "support/tried.hpp"

namespace pinfold::integration {

namespace {

size_t scaled(size_t count) { return testing::slow_machine() ? count / 20 : count; }

size_t entries_of(const fs::path& directory, const std::string& prefix = "") {
    std::error_code error;
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
        if (entry.path().filename().string().starts_with(prefix)) ++count;
    }
    return count;
}

size_t groups_of(const Bundle& bundle) {
    size_t count = 0;
    for (const HostMount& mount : host_mounts()) {
        const bool groups = mount.type == "cgroup2" || mount.type == "cgroup";
        if (groups) count += entries_of(fs::path(mount.point) / "pinfold", bundle.id());
    }
    return count;
}

// All that containers of this bundle could have left, by number.
json traces(const Bundle& bundle) {
    const std::string mounts = mount_table();
    return {{"descriptors", entries_of("/proc/self/fd")},
            {"processes", children().size()},
            {"mounts", std::ranges::count(mounts, '\n')},
            {"groups", groups_of(bundle)},
            {"states", entries_of(bundle.state_root(), bundle.id())}};
}

// Of the kernel, in kilobytes: others use it as well, so this is told and not judged.
long kernel_memory() {
    std::istringstream info(read_text("/proc/meminfo"));
    for (std::string name; info >> name;) {
        long value = 0;
        if (name == "SUnreclaim:" && info >> value) return value;
    }
    return 0;
}

// What was there before is there afterwards, and nothing else.
class SameAfterwards {
public:
    explicit SameAfterwards(const Bundle& bundle) : bundle_(bundle), before_(traces(bundle)) {}
    ~SameAfterwards() {
        CHECK(traces(bundle_) == before_);
        std::printf("     kernel memory that cannot be reclaimed: %+ld kB\n", kernel_memory() - memory_);
    }
    SameAfterwards(const SameAfterwards&) = delete;
    SameAfterwards& operator=(const SameAfterwards&) = delete;

private:
    const Bundle& bundle_;
    json before_;
    long memory_ = kernel_memory();
};

void count_good(const char* kind, const Ended& ended) {
    testing::count_tried(kind, ended.status == 0);
    CHECK_MESSAGE(ended.status == 0, ended.err);
}

std::vector<std::string> ids(const Bundle& bundle, size_t count) {
    std::vector<std::string> out;
    for (size_t i = 0; i < count; ++i) out.push_back(bundle.id() + "-" + std::to_string(i));
    return out;
}

size_t running(const Bundle& bundle) {
    const json listed = json::parse(verb(bundle, {"list", "--format", "json"}).out);
    return std::ranges::count_if(listed, [](const json& state) { return state["status"] == "running"; });
}

// Their streams go nowhere: a pipe for each would outlive the test's own end.
SpawnOptions silently(const UniqueFd& null) { return {.fds = {{1, null.get()}}}; }

// A process of many that run at once takes three descriptors of this program.
class ManyDescriptors {
public:
    ManyDescriptors() {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        const rlimit all{before_.rlim_max, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &all) == 0);
    }
    ~ManyDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    ManyDescriptors(const ManyDescriptors&) = delete;
    ManyDescriptors& operator=(const ManyDescriptors&) = delete;

private:
    rlimit before_{};
};

bool has_ended(const Process& process) {
    siginfo_t end{};
    return ::waitid(P_PID, id_t(process.pid()), &end, WEXITED | WNOWAIT | WNOHANG) == 0 && end.si_pid != 0;
}

// Whoever else wants to do something on the machine must be able to: the longest that a command took meanwhile.
std::chrono::milliseconds slowest_answer(const std::vector<std::unique_ptr<Process>>& others) {
    std::chrono::steady_clock::duration longest{};
    for (const auto& other : others) {
        while (!has_ended(*other)) {
            const auto start = std::chrono::steady_clock::now();
            CHECK(run_program({"true"}).status == 0);
            longest = std::max(longest, std::chrono::steady_clock::now() - start);
        }
    }
    return std::chrono::duration_cast<std::chrono::milliseconds>(longest);
}

// All of them end well, which one that has reached its deadline does not.
void run_at_once(const Bundle& bundle, size_t count, const SpawnOptions& spawn) {
    const ManyDescriptors many;
    const SameAfterwards same(bundle);
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::unique_ptr<Process>> all;
    for (const std::string& id : ids(bundle, count)) {
        all.push_back(std::make_unique<Process>(bundle.verb({"sandbox", "--name", id, "--", "true"}), spawn));
    }
    const std::chrono::milliseconds slowest = slowest_answer(all);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    for (const auto& one : all) count_good("sandboxes", one->finish());
    std::printf("     %zu at once: %.1f s; another command took %ld ms at most\n", count, took.count(),
                long(slowest.count()));
    CHECK(slowest < std::chrono::seconds(5));
}

}  // namespace

TEST_CASE("load: two hundred containers at once") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"wait-signal"}).write_config();
    const std::vector<std::string> all = ids(bundle, scaled(200));
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const SameAfterwards same(bundle);
    for (const std::string& id : all) {
        count_good("containers", run_program(bundle.verb({"create", "--bundle", bundle.path(), id}), silently(null)));
    }
    for (const std::string& id : all) count_good("starts", verb(bundle, {"start", id}));
    CHECK(running(bundle) == all.size());
    CHECK(children().size() >= all.size());
    for (const std::string& id : all) count_good("deletes", verb(bundle, {"delete", "--force", id}));
}

TEST_CASE("load: two thousand containers in a row") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"exit", "0"}).write_config();
    const std::vector<std::string> command = bundle.command_line({});
    const SameAfterwards same(bundle);
    for (size_t i = 0; i < scaled(2000); ++i) count_good("containers", run_program(command));
}

TEST_CASE("load: three hundred sandboxes in a row") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle roots;
    Bundle bundle;
    const SameAfterwards same(bundle);
    const SpawnOptions user = normal_user(bundle);
    for (size_t i = 0; i < scaled(300); ++i) {
        count_good("sandboxes",
                   i % 3 == 0 ? run_job(bundle, {{}, {"true"}, user}) : run_job(roots, {{}, {"true"}, {}}));
    }
}

// What made hundreds at once starve each other: the child waits for its parent's last look, however late that is, and
// must sleep meanwhile. The parent is held up at the calls by which it lets the child go on.
TEST_CASE("load: who waits for its start takes no processor's time") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace");
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const std::string calls = "ioctl,process_vm_writev", result = bundle.host() / "result";
        const std::vector<std::string> job =
            bundle.verb({"sandbox", "--name", bundle.id(), "--result", result, "--", "true"});
        const auto seconds = [&](std::vector<std::string> words) {
            words.insert(words.end(), job.begin(), job.end());
            SpawnOptions how = spawn;
            how.env.push_back("ASAN_OPTIONS=detect_leaks=0");
            const Ended ended = run_program(words, how);
            CHECK_MESSAGE(ended.status == 0, ended.err);
            return json::parse(read_text(result))["usage"]["cpu_seconds"].get<double>();
        };
        const double plain = seconds({});
        const double held_up = seconds({"/usr/bin/strace", "-qq", "-o", "/dev/null", "-e", "trace=" + calls, "-e",
                                        "inject=" + calls + ":delay_enter=2000000"});
        WITHSTANDS("spinning", held_up < plain + 0.2);
    }
}

TEST_CASE("load: three hundred sandboxes at once, and the machine answers") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    run_at_once(bundle, scaled(300), {});
}

TEST_CASE("load: three hundred sandboxes of a normal user at once, and the machine answers") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    run_at_once(bundle, scaled(300), user);
}

TEST_CASE("load: a thousand sandboxes at once, and the machine answers") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    run_at_once(bundle, scaled(1000), {});
}

}  // namespace pinfold::integration
