// Every limit bites: seen from inside a container, or in what the kernel counts for its group.
#include <signal.h>
#include <unistd.h>

#include <sstream>

#include "harness.hpp"
#include "turns.hpp"

using namespace pinfold::integration;

namespace {

constexpr int64_t kMiB = 1 << 20;

// The number after this word in a file of the group, such as "usage_usec" in cpu.stat.
int64_t count_in(const Bundle& bundle, const std::string& file, const std::string& key) {
    std::istringstream text(group_file_of(bundle, file));
    int64_t value = -1;
    for (std::string word; text >> word;) {
        if (word == key) text >> value;
    }
    return value;
}

int64_t number_in(const Bundle& bundle, const std::string& file) { return std::stoll(group_file_of(bundle, file)); }

// Swap in compressed memory, for as long as the object lives.
class Swap {
public:
    Swap() {
        run_program({"modprobe", "zram", "num_devices=0"});  // no matter if it fails: it may be built in
        number_ = std::to_string(std::stoi(read_text("/sys/class/zram-control/hot_add")));
        write_text("/sys/block/zram" + number_ + "/disksize", "256M");
        check_ok(run_program({"mkswap", device()}));
        check_ok(run_program({"swapon", device()}));
    }
    ~Swap() {
        check_ok(run_program({"swapoff", device()}));
        write_text("/sys/class/zram-control/hot_remove", number_);
    }
    Swap(const Swap&) = delete;
    Swap& operator=(const Swap&) = delete;

private:
    std::string device() const { return "/dev/zram" + number_; }

    std::string number_;
};

// A setting of the host that is put back at the end of the scope.
class Setting {
public:
    Setting(const fs::path& file, const std::string& value) : file_(file), old_(read_text(file)) {
        write_text(file, value);
    }
    ~Setting() { write_text(file_, old_); }
    Setting(const Setting&) = delete;
    Setting& operator=(const Setting&) = delete;

    std::string value() const { return read_text(file_); }

private:
    fs::path file_;
    std::string old_;
};

// A container that works for ever on the first processor, beside one that works there for a second: what the former
// gets meanwhile, in milliseconds.
int64_t work_beside(const json& mine, const json& other) {
    Bundle bundle;
    Bundle rival;
    bundle.config["linux"]["resources"]["cpu"] = mine;
    rival.config["linux"]["resources"]["cpu"] = other;
    for (Bundle* each : {&bundle, &rival}) each->config["linux"]["resources"]["cpu"]["cpus"] = "0";
    const Turns working(bundle, {{"wait-signal"}, {"burn", "1000000000"}});
    const Turns measured(rival, {{"wait-signal"}, {"burn", "1000"}, {"wait-signal"}});
    working.go_on_without_answer();
    const int64_t before = count_in(bundle, "cpu.stat", "usage_usec");
    CHECK(measured.go_on()["ok"] == true);
    const int64_t after = count_in(bundle, "cpu.stat", "usage_usec");
    measured.await_ready();
    measured.go_on_without_answer();
    CHECK(measured.end() == 0);
    CHECK(working.kill() == 128 + SIGKILL);
    return (after - before) / 1000;
}

std::string field_of_status(const Outcome& outcome, const std::string& name) {
    std::istringstream lines(outcome.answer()["text"].get<std::string>());
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind(name + ":\t", 0) == 0) return line.substr(name.size() + 2);
    }
    return {};
}

}  // namespace

TEST_CASE("limits: memory and swap together") {
    NEEDS_CONTROLLER("memory");
    const Swap swap;
    Bundle bundle;
    json& memory = bundle.config["linux"]["resources"]["memory"];
    memory = {{"limit", 32 * kMiB}, {"swap", 64 * kMiB}};
    CHECK(run_probe(bundle, {{"alloc", "48"}}).status == 0);
    CHECK(run_probe(bundle, {{"alloc", "80"}}).status == 128 + SIGKILL);
    memory["swap"] = 32 * kMiB;  // nothing may be swapped
    CHECK(run_probe(bundle, {{"alloc", "48"}}).status == 128 + SIGKILL);
    memory["swap"] = -1;
    CHECK(run_probe(bundle, {{"alloc", "80"}}).status == 0);
}

TEST_CASE("limits: a reservation is reclaimed last") {
    NEEDS_CONTROLLER("memory");
    const Swap swap;
    Bundle reserved;
    Bundle other;
    const std::string parent = "/" + reserved.id() + "-parent";
    for (Bundle* each : {&reserved, &other}) each->config["linux"]["cgroupsPath"] = parent + "/" + each->id();
    reserved.config["linux"]["resources"]["memory"]["reservation"] = 64 * kMiB;
    {
        const Turns first(reserved, {{"alloc", "48"}, {"wait-signal"}});
        const Turns second(other, {{"alloc", "48"}, {"wait-signal"}});
        // As the kernel does for itself where memory is short.
        write_text(cgroup2_mount() / parent.substr(1) / "memory.reclaim", "32M");
        CHECK(number_in(reserved, "memory.swap.current") < kMiB);
        CHECK(number_in(other, "memory.swap.current") > 24 * kMiB);
        for (const Turns* each : {&first, &second}) {
            each->go_on_without_answer();
            CHECK(each->end() == 0);
        }
    }
    fs::remove(cgroup2_mount() / parent.substr(1));
}

TEST_CASE("limits: a new memory limit below the usage is refused if that is asked for") {
    NEEDS_CONTROLLER("memory");
    Bundle bundle;
    const Turns payload(bundle, {{"alloc", "32"}, {"wait-signal"}});
    check_fails(payload.update({"-r", "-"}, R"({"memory": {"limit": 16777216, "checkBeforeUpdate": true}})"),
                "linux.resources.memory.limit: 16777216 is less than the ");
    CHECK(payload.group_file("memory.max") == "max");
    check_ok(payload.update({"-r", "-"}, R"({"memory": {"limit": 67108864, "checkBeforeUpdate": true}})"));
    CHECK(payload.group_file("memory.max") == "67108864");
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("limits: a quota of processor time, within ten percent over two seconds") {
    NEEDS_CONTROLLER("cpu");
    Bundle bundle;
    bundle.config["linux"]["resources"]["cpu"] = {{"quota", 50000}, {"period", 100000}};
    const int wall = run_probe(bundle, {{"burn", "1000"}}).answer()["wall_ms"].get<int>();
    CHECK(wall >= 1800);
    CHECK(wall <= 2200);
}

TEST_CASE("limits: time that is saved up may be used at once") {
    NEEDS_CONTROLLER("cpu");
    Bundle bundle;
    json& cpu = bundle.config["linux"]["resources"]["cpu"];
    cpu = {{"quota", 20000}, {"period", 100000}, {"burst", 20000}};
    const auto bursts = [&] {
        const Turns payload(bundle, {{"wait-signal"}, {"burn", "100"}, {"wait-signal"}});
        // Waiting for us, the payload saves up.
        check_ok(verb(bundle, {"state", bundle.id()}));
        payload.go_on();
        payload.await_ready();
        const int64_t count = count_in(bundle, "cpu.stat", "nr_bursts");
        payload.go_on_without_answer();
        CHECK(payload.end() == 0);
        return count;
    };
    CHECK(bursts() > 0);
    cpu["burst"] = 0;
    CHECK(bursts() == 0);
}

TEST_CASE("limits: shares divide a processor") {
    NEEDS_CONTROLLER("cpu");
    NEEDS_CONTROLLER("cpuset");
    // Weights of 174 and 100.
    const int64_t less = work_beside({{"shares", 1024}}, {{"shares", 2048}});
    CHECK(less > 1000 * 100 / 174 * 8 / 10);
    CHECK(less < 1000 * 100 / 174 * 12 / 10);
}

TEST_CASE("limits: an idle container gets what is left over") {
    NEEDS_CONTROLLER("cpu");
    NEEDS_CONTROLLER("cpuset");
    CHECK(work_beside({{"idle", 1}}, {{"idle", 0}}) < 100);
    CHECK(work_beside({{"idle", 0}}, {{"idle", 0}}) > 700);
}

TEST_CASE("limits: processors and memory nodes") {
    NEEDS_CONTROLLER("cpuset");
    if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) SKIP_TEST("only one processor");
    Bundle bundle;
    json& cpu = bundle.config["linux"]["resources"]["cpu"];
    cpu = {{"cpus", "1"}};
    const bool several_nodes = fs::exists("/sys/devices/system/node/node1");
    if (several_nodes) cpu["mems"] = "1";
    const Outcome outcome = run_probe(bundle, {{"read", "/proc/self/status"}, {"report"}});
    CHECK(field_of_status(outcome, "Cpus_allowed_list") == "1");
    if (several_nodes) CHECK(field_of_status(outcome, "Mems_allowed_list") == "1");
    CHECK(outcome.answer(1)["scheduling"]["cpus"] == json::array({1}));

    cpu = {{"cpus", "4000"}};
    check_refused({run(bundle).status, "", run(bundle).err}, "linux.resources.cpu.cpus: ");
    cpu = {{"mems", "400"}};
    check_refused({run(bundle).status, "", run(bundle).err}, "linux.resources.cpu.mems: ");
}

TEST_CASE("limits: huge pages, when they are reserved and when they are touched") {
    NEEDS_CONTROLLER("hugetlb");
    const Setting pages("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8");
    if (pages.value() != "8\n") SKIP_TEST("the kernel finds no eight huge pages");
    Bundle bundle;
    json& limits = bundle.config["linux"]["resources"]["hugepageLimits"];
    limits = json::array({{{"pageSize", "2MB"}, {"limit", 4 * kMiB}}});
    CHECK(run_probe(bundle, {{"hugepages", "2"}}).answer()["ok"] == true);
    CHECK(run_probe(bundle, {{"hugepages", "3"}}).answer()["errno"] == "ENOMEM");
    CHECK(run_probe(bundle, {{"hugepages", "2", "noreserve"}}).answer()["ok"] == true);
    CHECK(run_probe(bundle, {{"hugepages", "3", "noreserve"}}).status == 128 + SIGBUS);
    limits[0]["limit"] = 8 * kMiB;
    CHECK(run_probe(bundle, {{"hugepages", "3"}}).answer()["ok"] == true);
    limits[0]["pageSize"] = "3MB";
    const Outcome refused = run(bundle);
    CHECK(refused.status == 1);
    CHECK_MESSAGE(refused.says("linux.resources.hugepageLimits[0]: open hugetlb.3MB.max: does not exist"), refused.err);
    CHECK(refused.says("hint: /sys/kernel/mm/hugepages"));
}

TEST_CASE("limits: the kernel's own words") {
    NEEDS_CONTROLLER("pids");
    Bundle bundle;
    json& unified = bundle.config["linux"]["resources"]["unified"];
    unified = {{"pids.max", "5"}, {"cgroup.max.depth", "1"}};
    CHECK(run_probe(bundle, {{"fork", "20"}}).answer()["children"] == 4);
    unified = {{"pids.most", "5"}};
    Outcome refused = run(bundle);
    CHECK(refused.status == 1);
    CHECK_MESSAGE(refused.says("linux.resources.unified.pids.most: open pids.most: does not exist"), refused.err);
    CHECK(refused.says("hint: this kernel's controller has no such file"));
    unified = {{"nonsense.max", "5"}};
    refused = run(bundle);
    CHECK(refused.status == 1);
    CHECK_MESSAGE(refused.says("has no 'nonsense' controller"), refused.err);
}

TEST_CASE("limits: a bomb of processes ends at the limit, and leaves nothing") {
    NEEDS_CONTROLLER("pids");
    Bundle bundle;
    bundle.config["linux"]["resources"]["pids"]["limit"] = 20;
    const Turns payload(bundle, {{"bomb"}});
    const auto end = std::chrono::steady_clock::now() + patience();
    while (number_in(bundle, "pids.current") < 20 && std::chrono::steady_clock::now() < end) continue;
    CHECK(number_in(bundle, "pids.current") == 20);
    CHECK(count_in(bundle, "pids.events", "max") > 0);
    CHECK(payload.kill() == 128 + SIGKILL);
}

TEST_CASE("limits: what cgroup v2 does not have is refused, and what to do instead is told") {
    NEEDS_GROUPS();
    if (!cgroup1_mount("memory").empty()) SKIP_TEST("cgroup v1 has some of it here");
    Bundle bundle;
    json& resources = bundle.config["linux"]["resources"];
    const auto refusal = [&](const char* section, const json& value) {
        resources = {{section, value}};
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK_MESSAGE(outcome.says("cgroup v2 has no such setting\nhint: leave it out; instead: "), outcome.err);
        return outcome;
    };
    CHECK(refusal("memory", {{"kernel", kMiB}}).says("linux.resources.memory.kernel: "));
    CHECK(refusal("memory", {{"kernelTCP", kMiB}}).says("linux.resources.memory.kernelTCP: "));
    CHECK(refusal("memory", {{"swappiness", 0}}).says("linux.resources.memory.swappiness: "));
    CHECK(refusal("memory", {{"disableOOMKiller", true}}).says("linux.resources.memory.disableOOMKiller: "));
    CHECK(refusal("cpu", {{"realtimeRuntime", 1000}}).says("linux.resources.cpu.realtimeRuntime: "));
    CHECK(refusal("cpu", {{"realtimePeriod", 1000}}).says("linux.resources.cpu.realtimePeriod: "));
    CHECK(refusal("blockIO", {{"leafWeight", 10}}).says("linux.resources.blockIO.leafWeight: "));
    CHECK(refusal("network", {{"classID", 1}}).says("linux.resources.network.classID: "));
    const json priorities = json::array({{{"name", "lo"}, {"priority", 1}}});
    CHECK(refusal("network", {{"priorities", priorities}}).says("linux.resources.network.priorities: "));

    // As engines write that nothing is asked for.
    resources = {{"memory",
                  {{"kernel", -1},
                   {"kernelTCP", -1},
                   {"swappiness", nullptr},
                   {"disableOOMKiller", false},
                   {"useHierarchy", true},
                   {"checkBeforeUpdate", true}}},
                 {"cpu", {{"realtimeRuntime", 0}, {"realtimePeriod", 0}, {"cpus", ""}, {"mems", ""}}},
                 {"blockIO", {{"weight", 0}, {"leafWeight", 0}}},
                 {"network", {{"classID", 0}}}};
    CHECK(run_probe(bundle, {{"exit", "0"}}).status == 0);
}
