// cgroup v1, beside v2 or alone: each limit bites from inside a container, and nothing is left of any.
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <chrono>
#include <fstream>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

bool has_v2() { return !cgroup2_mount().empty(); }

json& resources(Bundle& bundle) { return bundle.config["linux"]["resources"]; }

// With its own cgroup namespace, and /sys/fs/cgroup.
Bundle& show_cgroups(Bundle& bundle, std::vector<std::string> options) {
    bundle.add_namespace("cgroup");
    bundle.drop_mount("/sys/fs/cgroup");
    options.insert(options.end(), {"nosuid", "noexec", "nodev"});
    return bundle.mount("/sys/fs/cgroup", "cgroup", "cgroup", options);
}

fs::path group_of(const Bundle& bundle, const std::string& controller) {
    return cgroup1_mount(controller) / "pinfold" / bundle.id();
}

std::string group_file(const Bundle& bundle, const std::string& name) {
    std::string text = read_text(group_of(bundle, name.substr(0, name.find('.'))) / name);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

// Every limit that this machine's v1 hierarchies have and that needs no device, in the words of config.json.
json many_limits() {
    return {
        {"memory", {{"limit", 64 << 20}, {"reservation", 32 << 20}, {"swappiness", 10}, {"kernelTCP", 16 << 20}}},
        {"cpu", {{"shares", 512}, {"quota", 50000}, {"period", 50000}, {"burst", 1000}, {"cpus", "0"}, {"mems", "0"}}},
        {"pids", {{"limit", 50}}},
        {"devices", json::array({{{"allow", false}, {"access", "rwm"}}})}};
}

// A payload that says so and waits.
// The groups of a process of the container as itself sees them: "/" in all that it was put into.
void check_in_all_groups(const std::string& cgroup_file) {
    std::istringstream lines(cgroup_file);
    for (std::string line; std::getline(lines, line);) {
        const bool is_ours = line.find("name=") == std::string::npos && (line.rfind("0::", 0) != 0 || has_v2());
        CAPTURE(line);
        if (is_ours) CHECK(line.substr(line.rfind(':')) == ":/");
    }
}

// A whole disk below a directory of this machine, and the directory; nothing where it is a partition or no disk.
struct Disk {
    fs::path directory;
    unsigned major_number = 0;
    unsigned minor_number = 0;
};
Disk find_disk() {
    for (const char* directory : {"/var/tmp", "/tmp", "/root"}) {
        struct stat info {};
        if (::stat(directory, &info) != 0 || major(info.st_dev) == 0) continue;
        const std::string numbers = std::to_string(major(info.st_dev)) + ":" + std::to_string(minor(info.st_dev));
        if (fs::exists("/sys/dev/block/" + numbers + "/queue")) {
            return {directory, major(info.st_dev), minor(info.st_dev)};
        }
    }
    return {};
}

class TempFile {
public:
    explicit TempFile(const fs::path& directory) : path_((directory / "pinfold-test-XXXXXX").string()) {
        REQUIRE(UniqueFd(::mkstemp(path_.data())));
        fs::resize_file(path_, 4 << 20);
        std::ofstream(path_) << std::string(4 << 20, 'x');
    }
    ~TempFile() { fs::remove(path_); }
    TempFile(const TempFile&) = delete;
    TempFile& operator=(const TempFile&) = delete;

    const std::string& path() const { return path_; }

private:
    std::string path_;
};

json throttle(const Disk& disk, uint64_t rate) {
    return json::array({{{"major", disk.major_number}, {"minor", disk.minor_number}, {"rate", rate}}});
}

// Used processor time of the group in ns, and the time of the reading.
std::pair<double, std::chrono::steady_clock::time_point> usage_of(const Bundle& bundle) {
    return {std::stod(group_file(bundle, "cpuacct.usage")), std::chrono::steady_clock::now()};
}

}  // namespace

#define NEEDS_V1(controller) \
    NEEDS_ROOT();            \
    PINFOLD_ONLY();          \
    if (cgroup1_mount(controller).empty()) SKIP_TEST("cgroup v1 has no " controller " here")

TEST_CASE("legacy: a container without limits has groups in v1 only where there is nothing else") {
    NEEDS_V1("memory");
    Bundle bundle;
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    CHECK(fs::exists(group_of(bundle, "memory")) == !has_v2());
    CHECK(cgroups_named(bundle.id()).empty() == false);
}

TEST_CASE("legacy: with a cgroupsPath it has one in every hierarchy") {
    NEEDS_V1("memory");
    Bundle bundle;
    const std::string path = "/pinfold/" + bundle.id();
    bundle.config["linux"]["cgroupsPath"] = path;
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    for (const char* controller : {"memory", "cpu", "cpuset", "freezer", "pids", "devices", "blkio"}) {
        if (cgroup1_mount(controller).empty()) continue;
        CHECK(read_text(cgroup1_mount(controller).string() + path + "/cgroup.procs") ==
              std::to_string(container.pid()) + "\n");
    }
}

TEST_CASE("legacy: a memory limit ends what exceeds it") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle)["memory"]["limit"] = 32 << 20;
    CHECK(run_probe(bundle, {{"alloc", "8"}}).status == 0);
    CHECK(run_probe(bundle, {{"alloc", "64"}}).status == 128 + SIGKILL);
}

TEST_CASE("legacy: who ran out of memory, and whose limit it was, is told") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle)["memory"]["limit"] = 32 << 20;
    bundle.probe({"alloc", "64"});
    const Outcome outcome = run(bundle, {.args = {"--keep"}});
    CHECK(outcome.status == 128 + SIGKILL);
    CHECK_MESSAGE(outcome.says("out of memory"), outcome.err);
    CHECK_MESSAGE(outcome.says("linux.resources.memory.limit, 33554432 bytes, was reached"), outcome.err);
    const json state = json::parse(verb(bundle, {"state", bundle.id()}).out);
    CHECK(state["annotations"]["org.pinfold.oom-killed"] == "1");
    CHECK(verb(bundle, {"delete", bundle.id()}).status == 0);
}

TEST_CASE("legacy: a limit that holds for memory and swap together is the container's own, too") {
    NEEDS_V1("memory");
    Bundle bundle;
    const int64_t limit = 32 << 20;
    resources(bundle)["memory"] = {{"limit", limit}, {"swap", limit}};
    bundle.probe({"alloc", "64"});
    const Outcome same = run(bundle);
    CHECK(same.status == 128 + SIGKILL);
    CHECK_MESSAGE(same.says("linux.resources.memory.limit, 33554432 bytes, was reached"), same.err);
    bundle.config["linux"]["resources"].erase("memory");
    const std::string parent = bundle.id() + "-parent";
    bundle.config["linux"]["cgroupsPath"] = "/" + parent + "/" + bundle.id();
    resources(bundle)["memory"] = {{"limit", 2 * limit}, {"swap", 2 * limit}};
    bundle.probe({"exit", "0"});
    CHECK(run(bundle).status == 0);
    const fs::path above = fs::path("/sys/fs/cgroup/memory") / parent;
    write_text(above / "memory.limit_in_bytes", std::to_string(limit));
    bundle.probe({"alloc", "48"});
    const Outcome outer = run(bundle);
    CHECK_MESSAGE(outer.says("; it was a limit above the container's group, or the host's memory"), outer.err);
    for (const std::string& group : cgroups_named(parent)) fs::remove(group);
}

TEST_CASE("legacy: a memory limit that is too low for the start is said to be, with one that is not") {
    NEEDS_V1("memory");
    Bundle bundle;
    bundle.probe({"exit", "0"});
    resources(bundle)["memory"]["limit"] = 4096;
    const Outcome refused = run(bundle);
    CHECK(refused.status == 1);
    const size_t found = refused.err.find("it takes ");
    REQUIRE_MESSAGE(refused.says("memory limit too low"), refused.err);
    REQUIRE_MESSAGE(found != std::string::npos, refused.err);
    resources(bundle)["memory"]["limit"] = std::stoul(refused.err.substr(found + 9));
    CHECK(run(bundle).status == 0);
}

TEST_CASE("legacy: without the killer, what exceeds the memory limit stands still") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle)["memory"] = {{"limit", 16 << 20}, {"disableOOMKiller", true}};
    bundle.probe({"alloc", "64"});
    const Container container(bundle, Container::As::running);
    const auto end = std::chrono::steady_clock::now() + patience();
    while (group_file(bundle, "memory.oom_control").find("under_oom 1") == std::string::npos) {
        REQUIRE(std::chrono::steady_clock::now() < end);
    }
    CHECK(container.status() == "running");
}

TEST_CASE("legacy: a limit of processes") {
    NEEDS_V1("pids");
    Bundle bundle;
    resources(bundle)["pids"]["limit"] = 5;
    const Outcome outcome = run_probe(bundle, {{"fork", "20"}});
    CHECK(outcome.answer()["children"] == 4);
    CHECK(outcome.answer()["errno"] == "EAGAIN");
}

TEST_CASE("legacy: a busy loop gets its quota, and no more") {
    NEEDS_V1("cpuacct");
    Bundle bundle;
    resources(bundle)["cpu"] = {{"quota", 10000}, {"period", 100000}};
    bundle.probe({"burn", "60000"});
    const Container container(bundle, Container::As::running);
    const auto begin = usage_of(bundle);
    auto end = begin;
    // The edges of a window fall anywhere within a period, so it has to be one of many.
    while (end.second - begin.second < std::chrono::seconds(2)) end = usage_of(bundle);
    const std::chrono::duration<double, std::nano> elapsed = end.second - begin.second;
    const double share = (end.first - begin.first) / elapsed.count();
    CAPTURE(share);
    CHECK(share > 0.05);  // others may want the processors, too
    CHECK(share < 0.11);
}

TEST_CASE("legacy: processors and memory nodes") {
    NEEDS_V1("cpuset");
    Bundle bundle;
    resources(bundle)["cpu"] = {{"cpus", "0"}, {"mems", "0"}};
    CHECK(report_of(bundle)["scheduling"]["cpus"] == json::array({0}));
    resources(bundle)["cpu"]["cpus"] = "4095";
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says("linux.resources.cpu.cpus: "));
}

TEST_CASE("legacy: a disk is throttled") {
    NEEDS_V1("blkio");
    const Disk disk = find_disk();
    if (disk.directory.empty()) SKIP_TEST("no directory lies directly on a whole disk");
    const TempFile file(disk.directory);
    Bundle bundle;
    write_text(bundle.rootfs() / "data/file", "");
    bundle.bind(file.path(), "/data/file");
    const auto wall_ms = [&](const char* limit, uint64_t rate, const Command& command) {
        resources(bundle)["blockIO"] = {{limit, throttle(disk, rate)}};
        return run_probe(bundle, {command}).answer()["wall_ms"].get<int>();
    };
    CHECK(wall_ms("throttleReadBpsDevice", 1 << 20, {"disk", "/data/file", "read", "65536", "16"}) >= 700);
    CHECK(wall_ms("throttleWriteBpsDevice", 1 << 20, {"disk", "/data/file", "write", "65536", "16"}) >= 700);
    CHECK(wall_ms("throttleReadIOPSDevice", 20, {"disk", "/data/file", "read", "4096", "20"}) >= 700);
    CHECK(wall_ms("throttleWriteIOPSDevice", 20, {"disk", "/data/file", "write", "4096", "20"}) >= 700);
}

TEST_CASE("legacy: devices are filtered") {
    NEEDS_V1("devices");
    Bundle bundle;
    bundle.config["linux"]["devices"] =
        json::array({{{"path", "/dev/given"}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"fileMode", 0666}}});
    resources(bundle)["pids"]["limit"] = 50;
    const std::vector<Command> commands = {{"open", "/dev/given", "ro"}, {"open", "/dev/null", "rw"}};
    const Outcome denied = run_probe(bundle, commands);
    CHECK(denied.answer(0)["errno"] == "EPERM");
    CHECK(denied.answer(1)["ok"] == true);
    resources(bundle)["devices"].push_back(
        {{"allow", true}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"access", "r"}});
    const json allowed = run_probe(bundle, commands).answer(0);
    CHECK((allowed["ok"] == true || allowed["errno"] == "ENODEV" || allowed["errno"] == "ENXIO"));
}

TEST_CASE("legacy: device rules are changed while the payload runs") {
    NEEDS_V1("devices");
    Bundle bundle;
    bundle.config["linux"]["devices"] =
        json::array({{{"path", "/dev/given"}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"fileMode", 0666}}});
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    const auto open = [&] {
        const Ended ended = container.exec({}, {"/probe", "open", "/dev/given", "ro"});
        REQUIRE_MESSAGE(ended.status == 0, ended.err);
        return json::parse(ended.out).value("errno", "");
    };
    CHECK(open() == "EPERM");
    const json rules = {{"devices", json::array({{{"allow", true}, {"type", "c"}, {"major", 10}, {"access", "rw"}}})}};
    const Ended updated =
        run_program(bundle.verb({"update", "--resources", "-", bundle.id()}), {.input = rules.dump()});
    CHECK_MESSAGE(updated.status == 0, updated.err);
    CHECK(open() != "EPERM");
    CHECK(container.status() == "running");
}

TEST_CASE("legacy: every limit reaches its file") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle) = many_limits();
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    const std::pair<const char*, const char*> expected[] = {
        {"memory.limit_in_bytes", "67108864"},
        {"memory.soft_limit_in_bytes", "33554432"},
        {"memory.swappiness", "10"},
        {"memory.kmem.tcp.limit_in_bytes", "16777216"},
        {"cpu.shares", "512"},
        {"cpu.cfs_quota_us", "50000"},
        {"cpu.cfs_period_us", "50000"},
        {"cpu.cfs_burst_us", "1000"},
        {"cpuset.cpus", "0"},
        {"pids.max", "50"},
    };
    for (const auto& limit : expected) {
        CAPTURE(limit.first);
        CHECK(group_file(bundle, limit.first) == limit.second);
    }
}

TEST_CASE("legacy: what the kernel cannot enforce is refused by name") {
    NEEDS_V1("memory");
    const std::pair<json, const char*> cases[] = {
        {{{"blockIO", {{"leafWeight", 100}}}}, "linux.resources.blockIO.leafWeight: "},
        {{{"rdma", {{"mlx5_1", {{"hcaHandles", 3}}}}}}, "linux.resources.rdma.mlx5_1: "},
        {{{"blockIO", {{"throttleReadBpsDevice", json::array({{{"major", 4095}, {"minor", 5}, {"rate", 1}}})}}}},
         "linux.resources.blockIO.throttleReadBpsDevice[0]: "},
    };
    for (const auto& [limits, words] : cases) {
        Bundle bundle;
        resources(bundle).update(limits);
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK_MESSAGE(outcome.says(words), outcome.err);
        CHECK_MESSAGE(outcome.says("hint: "), outcome.err);
    }
}

TEST_CASE("legacy: the container sees its own groups, laid out as on the host") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle)["memory"]["limit"] = 64 << 20;
    show_cgroups(bundle, {"ro"});
    const std::vector<Command> commands = {{"read", "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
                                           {"write", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "1"},
                                           {"mkdir", "/sys/fs/cgroup/new"},
                                           {"read", "/proc/self/cgroup"},
                                           {"list", "/sys/fs/cgroup"}};
    const Outcome outcome = run_probe(bundle, commands);
    CHECK(outcome.answer(0)["text"] == "67108864\n");
    CHECK(outcome.answer(1)["errno"] == "EROFS");
    CHECK(outcome.answer(2)["errno"] == "EROFS");
    check_in_all_groups(outcome.answer(3)["text"]);
    CHECK(has(outcome.answer(4)["names"], "unified") == has_v2());
    CHECK(has(outcome.answer(4)["names"], "pids"));
}

TEST_CASE("legacy: a container with a user namespace of its own has limits as well") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle)["memory"]["limit"] = 64 << 20;
    show_cgroups(bundle, {"ro"}).add_namespace("user");
    bundle.config["linux"]["uidMappings"] = {{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}};
    bundle.config["linux"]["gidMappings"] = bundle.config["linux"]["uidMappings"];
    const Outcome outcome = run_probe(bundle, {{"read", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}});
    CHECK(outcome.answer()["text"] == "67108864\n");
}

TEST_CASE("legacy: exec joins the groups") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle) = many_limits();
    show_cgroups(waiting(bundle), {"ro"});
    const Container container(bundle, Container::As::running);
    const Ended ended = container.exec({}, {"/probe", "read", "/proc/self/cgroup"});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    check_in_all_groups(json::parse(ended.out)["text"]);
    CHECK(container.exec({}, {"/probe", "alloc", "128"}).status == 128 + SIGKILL);
}

TEST_CASE("legacy: pause, resume, ps and kill") {
    NEEDS_V1("freezer");
    Bundle bundle;
    resources(bundle)["pids"]["limit"] = 50;
    write_text(bundle.rootfs() / "data/count", "0");
    bundle.probe({"count", "/data/count"});
    bundle.config["root"]["readonly"] = false;
    const Container container(bundle, Container::As::running);
    CHECK(pids_of(bundle) == std::vector<pid_t>{container.pid()});
    container.must({"pause", bundle.id()});
    CHECK(container.status() == "paused");
    const std::string count = read_text(bundle.rootfs() / "data/count");
    CHECK(container.exec({}, {"/probe", "report"}).status != 0);
    CHECK(read_text(bundle.rootfs() / "data/count") == count);
    container.must({"resume", bundle.id()});
    CHECK(container.status() == "running");
    const auto end = std::chrono::steady_clock::now() + patience();
    while (read_text(bundle.rootfs() / "data/count") == count) REQUIRE(std::chrono::steady_clock::now() < end);
    container.must({"pause", bundle.id()});
    container.must({"kill", bundle.id(), "KILL"});
    container.await_end();
    container.must({"kill", "--all", bundle.id(), "KILL"});
}

TEST_CASE("legacy: statistics") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle) = many_limits();
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    const json data = json::parse(container.must({"events", "--stats", bundle.id()}))["data"];
    CHECK(data["memory"]["usage"]["limit"] == 64 << 20);
    CHECK(data["memory"]["usage"]["usage"].get<uint64_t>() > 0);
    CHECK(data["cpu"]["usage"]["total"].get<uint64_t>() > 0);
    CHECK(data["cpu"]["usage"]["percpu"].size() >= 1);
    CHECK(data["pids"] == json{{"current", 1}, {"limit", 50}});
}

TEST_CASE("legacy: a kill for want of memory is told, and then the end") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle)["memory"]["limit"] = 32 << 20;
    bundle.probe_each({{"wait-signal"}, {"alloc", "64"}});
    const Container container(bundle, Container::As::running);
    Process events(bundle.verb({"events", "--interval", "1ms", bundle.id()}), {});
    CHECK(json::parse(events.read_line())["type"] == "stats");
    // The signal may come before the payload is ready for it, which ends it as well, by a signal of another number.
    const Ended ready = container.exec({}, {"/probe", "report"});
    CHECK(ready.status == 0);
    container.must({"kill", bundle.id(), "TERM"});
    bool told = false;
    for (std::string line = events.read_line(); !told; line = events.read_line()) {
        told = json::parse(line)["type"] == "oom";
        if (told) break;
    }
    CHECK(told);
    CHECK(events.finish().status == 0);
}

TEST_CASE("legacy: limits are changed, and bite") {
    NEEDS_V1("pids");
    Bundle bundle;
    resources(bundle) = many_limits();
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    const auto update = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"update", bundle.id()});
        return verb(bundle, words);
    };
    CHECK(update({"--memory", "128M", "--pids-limit", "7", "--cpu-quota", "-1", "--cpu-share", "2048"}).status == 0);
    CHECK(group_file(bundle, "memory.limit_in_bytes") == "134217728");
    CHECK(group_file(bundle, "cpu.cfs_quota_us") == "-1");
    CHECK(group_file(bundle, "cpu.shares") == "2048");
    const Ended forks = container.exec({}, {"/probe", "fork", "20"});
    CHECK(json::parse(forks.out)["children"] == 5);
    // All or nothing.
    const Ended refused = update({"--pids-limit", "9", "--cpuset-cpus", "4095"});
    CHECK(refused.status == 1);
    CHECK_MESSAGE(refused.err.find("linux.resources.cpu.cpus: ") != std::string::npos, refused.err);
    CHECK(group_file(bundle, "pids.max") == "7");
}

TEST_CASE("legacy: an update of a container without groups in v1 is refused with a way out") {
    NEEDS_V1("memory");
    Bundle bundle;
    waiting(bundle);
    const Container container(bundle, Container::As::running);
    const Ended refused = verb(bundle, {"update", bundle.id(), "--memory", "64M"});
    if (!has_v2()) {  // where every container has them
        CHECK(refused.status == 0);
        return;
    }
    CHECK(refused.status == 1);
    CHECK_MESSAGE(refused.err.find("linux.resources.memory.limit: ") != std::string::npos, refused.err);
    CHECK_MESSAGE(refused.err.find("linux.cgroupsPath") != std::string::npos, refused.err);
}

TEST_CASE("legacy: nothing is left of groups that the payload nested, of a frozen container, of a killed pinfold") {
    NEEDS_V1("memory");
    SUBCASE("nested") {
        Bundle bundle;
        resources(bundle)["memory"]["limit"] = 64 << 20;
        show_cgroups(bundle, {});
        const Outcome outcome = run_probe(bundle, {{"mkdir", "/sys/fs/cgroup/memory/a"},
                                                   {"mkdir", "/sys/fs/cgroup/memory/a/b"},
                                                   {"mkdir", "/sys/fs/cgroup/pids/c"},
                                                   {"orphan"},
                                                   {"write", "/sys/fs/cgroup/memory/a/b/cgroup.procs", "1"}});
        for (size_t i = 0; i < 5; ++i) CHECK(outcome.answer(i)["ok"] == true);
        CHECK(outcome.status == 0);
    }
    SUBCASE("frozen") {
        Bundle bundle;
        resources(bundle)["memory"]["limit"] = 64 << 20;
        waiting(bundle);
        const Container container(bundle, Container::As::running);
        container.must({"pause", bundle.id()});
        container.must({"delete", "--force", bundle.id()});
    }
    SUBCASE("frozen by itself") {
        Bundle bundle;
        resources(bundle)["memory"]["limit"] = 64 << 20;
        show_cgroups(bundle, {}).probe({"write", "/sys/fs/cgroup/freezer/freezer.state", "FROZEN"});
        const Container container(bundle, Container::As::running);
        container.must({"delete", "--force", bundle.id()});
    }
    SUBCASE("killed") {
        Bundle bundle;
        resources(bundle)["memory"]["limit"] = 64 << 20;
        waiting(bundle);
        const auto running = start(bundle);
        REQUIRE(running->read_line() == "READY");
        running->signal(SIGKILL);
        CHECK(running->finish().status == 128 + SIGKILL);
        CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
    }
    SUBCASE("failed") {
        Bundle bundle;
        resources(bundle)["memory"]["limit"] = 64 << 20;
        bundle.config["process"]["args"] = {"/absent"};
        CHECK(run(bundle).status != 0);
    }
}

TEST_CASE("legacy: a dry run shows groups and writes") {
    NEEDS_V1("memory");
    Bundle bundle;
    resources(bundle)["memory"]["limit"] = 64 << 20;
    const Outcome outcome = run(bundle, {.args = {"--dry-run"}});
    CHECK(outcome.out.find("make the group " + group_of(bundle, "memory").string()) != std::string::npos);
    CHECK(outcome.out.find("linux.resources.memory.limit: write '67108864' to memory.limit_in_bytes") !=
          std::string::npos);
}
