// Limits on devices bite: disks that are throttled or weighed, handles of an RDMA device.
#include <sys/mount.h>
#include <unistd.h>

#include <sstream>

#include "harness.hpp"
#include "turns.hpp"

using namespace pinfold::integration;

namespace {

// A disk of the kernel's null_blk driver: 64 MB of memory that answers one request at a time, each after two
// milliseconds. Declare it before the Bundle, which takes its mount for a leak otherwise.
class Disk {
public:
    Disk() : name_("pinfold" + std::to_string(::getpid())), configfs_(playground() / "configfs") {
        run_program({"modprobe", "null_blk", "nr_devices=0"});  // no matter if it fails: it may be built in
        fs::create_directory(configfs_);
        REQUIRE(::mount("configfs", configfs_.c_str(), "configfs", 0, nullptr) == 0);
        if (!fs::exists(configfs_ / "nullb")) return;
        fs::create_directory(settings());
        for (const auto& [setting, value] : {std::pair("size", "64"),
                                             {"memory_backed", "1"},
                                             {"irqmode", "2"},
                                             {"completion_nsec", "2000000"},
                                             {"hw_queue_depth", "1"},
                                             {"power", "1"}}) {
            write_text(settings() / setting, value);
        }
        if (!fs::exists(block())) name_in_sys_ = "nullb" + std::to_string(std::stoi(read_text(settings() / "index")));
        std::istringstream numbers(read_text(block() / "dev"));
        char colon = 0;
        numbers >> major_ >> colon >> minor_;
    }
    ~Disk() {
        if (usable()) fs::remove(settings());
        ::umount2(configfs_.c_str(), 0);
        fs::remove(configfs_);
    }
    Disk(const Disk&) = delete;
    Disk& operator=(const Disk&) = delete;

    bool usable() const { return major_ != 0; }
    void set(const std::string& setting, const std::string& value) const {
        write_text(block() / "queue" / setting, value);
    }
    json number() const { return {{"major", major_}, {"minor", minor_}}; }
    std::string key() const { return std::to_string(major_) + ":" + std::to_string(minor_); }

    // At /dev/disk, and allowed.
    void give_to(Bundle& bundle) const {
        json node = {{"path", "/dev/disk"}, {"type", "b"}};
        json rule = {{"allow", true}, {"type", "b"}, {"access", "rw"}};
        node.update(number());
        rule.update(number());
        bundle.config["linux"]["devices"] = json::array({node});
        bundle.config["linux"]["resources"]["devices"].push_back(rule);
    }

private:
    fs::path settings() const { return configfs_ / "nullb" / name_; }
    fs::path block() const { return fs::path("/sys/block") / (name_in_sys_.empty() ? name_ : name_in_sys_); }

    std::string name_;
    std::string name_in_sys_;  // where an older kernel gives it another
    fs::path configfs_;
    int major_ = 0;
    int minor_ = 0;
};

// An RDMA device in software, on a network interface that leads nowhere.
class RdmaDevice {
public:
    RdmaDevice() {
        for (const char* module : {"dummy", "rdma_rxe", "ib_uverbs"}) run_program({"modprobe", module});
        run_program({"ip", "link", "add", "pinfold-rdma", "type", "dummy"});
        run_program({"ip", "link", "set", "pinfold-rdma", "up"});
        const auto made = run_program({"rdma", "link", "add", "pinfold_rxe", "type", "rxe", "netdev", "pinfold-rdma"});
        if (made.status != 0) return;
        for (const auto& entry : fs::directory_iterator("/sys/class/infiniband_verbs")) {
            if (read_text(entry.path() / "ibdev") == "pinfold_rxe\n")
                node_ = "/dev/infiniband" / entry.path().filename();
        }
    }
    ~RdmaDevice() {
        run_program({"rdma", "link", "delete", "pinfold_rxe"});
        run_program({"ip", "link", "delete", "pinfold-rdma"});
    }
    RdmaDevice(const RdmaDevice&) = delete;
    RdmaDevice& operator=(const RdmaDevice&) = delete;

    const fs::path& node() const { return node_; }

private:
    fs::path node_;
};

json throttle(const Disk& disk, int rate) {
    json entry = disk.number();
    entry["rate"] = rate;
    return json::array({entry});
}

// Requests of the group to the disk so far, from io.stat.
int64_t writes_of(const Bundle& bundle, const Disk& disk) {
    std::istringstream words(group_file_of(bundle, "io.stat"));
    bool here = false;
    for (std::string word; words >> word;) {
        if (word.find(':') != std::string::npos) here = word == disk.key();
        if (here && word.rfind("wios=", 0) == 0) return std::stoll(word.substr(5));
    }
    return 0;
}

// How many requests a container that writes for ever gets through while another one gets through a hundred.
int64_t requests_beside(const Disk& disk, const json& mine, const json& other) {
    Bundle bundle;
    Bundle rival;
    for (Bundle* each : {&bundle, &rival}) disk.give_to(*each);
    bundle.config["linux"]["resources"]["blockIO"] = mine;
    rival.config["linux"]["resources"]["blockIO"] = other;
    const Turns working(bundle, {{"wait-signal"}, {"disk", "/dev/disk", "write", "4096", "1000000000"}});
    const Turns measured(rival, {{"wait-signal"}, {"disk", "/dev/disk", "write", "4096", "100"}, {"wait-signal"}});
    working.go_on_without_answer();
    const int64_t before = writes_of(bundle, disk);
    CHECK(measured.go_on()["ok"] == true);
    const int64_t after = writes_of(bundle, disk);
    measured.await_ready();
    measured.go_on_without_answer();
    CHECK(measured.end() == 0);
    CHECK(working.kill() == 128 + SIGKILL);
    return after - before;
}

}  // namespace

TEST_CASE("limits: a throttled disk") {
    NEEDS_CONTROLLER("io");
    const Disk disk;
    if (!disk.usable()) SKIP_TEST("no null_blk in this kernel");
    struct Throttle {
        const char* property;
        const char* direction;
        int rate;
    };
    // Half of 200 blocks, or of 200 requests, in a second: two seconds, of which the first slice may be free.
    for (const Throttle& test : {Throttle{"throttleReadBpsDevice", "read", 409600},
                                 {"throttleWriteBpsDevice", "write", 409600},
                                 {"throttleReadIOPSDevice", "read", 100},
                                 {"throttleWriteIOPSDevice", "write", 100}}) {
        CAPTURE(test.property);
        Bundle bundle;
        disk.give_to(bundle);
        bundle.config["linux"]["resources"]["blockIO"][test.property] = throttle(disk, test.rate);
        const json answer = run_probe(bundle, {{"disk", "/dev/disk", test.direction, "4096", "200"}}).answer();
        CHECK(answer["ok"] == true);
        CHECK(answer["wall_ms"].get<int>() >= 1600);
        CHECK(answer["wall_ms"].get<int>() <= 2600);
    }
}

TEST_CASE("limits: throttles in the kernel's own words, several lines of them, and by update") {
    NEEDS_CONTROLLER("io");
    const Disk disk;
    if (!disk.usable()) SKIP_TEST("no null_blk in this kernel");
    Bundle bundle;
    disk.give_to(bundle);
    bundle.config["linux"]["resources"]["unified"]["io.max"] =
        disk.key() + " wiops=1000000\n" + disk.key() + " riops=100";
    const Turns payload(
        bundle,
        {{"disk", "/dev/disk", "read", "4096", "100"}, {"wait-signal"}, {"disk", "/dev/disk", "write", "4096", "200"}});
    CHECK(payload.group_file("io.max") == disk.key() + " rbps=max wbps=max riops=100 wiops=1000000");
    check_ok(payload.update({"-r", "-"}, json{{"blockIO", {{"throttleWriteIOPSDevice", throttle(disk, 100)}}}}.dump()));
    CHECK(payload.go_on()["wall_ms"].get<int>() >= 1600);
    CHECK(payload.end() == 0);
}

TEST_CASE("limits: weights divide a disk whose cost the kernel models") {
    NEEDS_CONTROLLER("io");
    const Disk disk;
    if (!disk.usable()) SKIP_TEST("no null_blk in this kernel");
    // Fifty requests in a second, whoever makes them.
    write_text(cgroup2_mount() / "io.cost.model",
               disk.key() +
                   " ctrl=user model=linear rbps=1000000000 rseqiops=50 rrandiops=50 wbps=1000000000 "
                   "wseqiops=50 wrandiops=50");
    write_text(cgroup2_mount() / "io.cost.qos", disk.key() + " enable=1 ctrl=user min=100 max=100");
    json per_device = disk.number();
    per_device["weight"] = 100;
    CHECK(requests_beside(disk, {{"weight", 500}}, {{"weight", 500}}) > 70);
    CHECK(requests_beside(disk, {{"weight", 50}}, {{"weight", 500}}) < 30);
    CHECK(requests_beside(disk, {{"weightDevice", json::array({per_device})}}, {{"weight", 1000}}) < 30);
}

// Only the figures: how well bfq divides so slow a machine's disk is a matter of luck.
TEST_CASE("limits: weights are given to bfq in its own unit") {
    NEEDS_CONTROLLER("io");
    const Disk disk;
    if (!disk.usable()) SKIP_TEST("no null_blk in this kernel");
    run_program({"modprobe", "bfq"});
    disk.set("scheduler", "bfq");
    Bundle bundle;
    json per_device = disk.number();
    per_device["weight"] = 700;
    bundle.config["linux"]["resources"]["blockIO"] = {{"weight", 50}, {"weightDevice", json::array({per_device})}};
    const Turns payload(bundle, {{"wait-signal"}});
    CHECK(payload.group_file("io.bfq.weight") == "default 50\n" + disk.key() + " 700");
    CHECK(payload.group_file("io.weight") == "default 405");
    check_ok(payload.update({"--blkio-weight", "60"}));
    CHECK(payload.group_file("io.bfq.weight").rfind("default 60", 0) == 0);
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
}

TEST_CASE("limits: a disk that is not there, and a weight that nothing obeys") {
    NEEDS_CONTROLLER("io");
    const Disk disk;
    if (!disk.usable()) SKIP_TEST("no null_blk in this kernel");
    disk.set("scheduler", "none");
    Bundle bundle;
    json& block_io = bundle.config["linux"]["resources"]["blockIO"];
    block_io["throttleReadBpsDevice"] = json::array({{{"major", 8}, {"minor", 4000}, {"rate", 1000}}});
    Outcome refused = run(bundle);
    CHECK(refused.status == 1);
    CHECK_MESSAGE(
        refused.says("linux.resources.blockIO.throttleReadBpsDevice[0]: write '8:4000 rbps=1000' to io.max: "),
        refused.err);
    CHECK(refused.says("hint: the numbers must be those of a whole disk"));
    json weight = disk.number();
    weight["weight"] = 100;
    block_io = {{"weightDevice", json::array({weight})}};
    refused = run(bundle);
    CHECK(refused.status == 1);
    CHECK_MESSAGE(refused.says("linux.resources.blockIO.weightDevice[0]: "), refused.err);
    CHECK(refused.says("hint: let the device's scheduler be bfq"));
}

TEST_CASE("limits: handles and objects of an RDMA device") {
    NEEDS_CONTROLLER("rdma");
    const RdmaDevice device;
    if (device.node().empty()) SKIP_TEST("no rdma_rxe in this kernel");
    Bundle bundle;
    bundle.bind(device.node(), "/verbs");
    json& resources = bundle.config["linux"]["resources"];
    resources["devices"].push_back({{"allow", true}, {"type", "c"}, {"major", 231}, {"access", "rw"}});
    CHECK(run_probe(bundle, {{"rdma", "/verbs"}}).answer() == json{{"ok", true}});
    resources["rdma"]["pinfold_rxe"] = {{"hcaHandles", 1}, {"hcaObjects", 0}};
    CHECK(run_probe(bundle, {{"rdma", "/verbs"}}).answer() == json{{"ok", true}, {"object_errno", "EAGAIN"}});
    resources["rdma"]["pinfold_rxe"] = {{"hcaHandles", 0}};
    CHECK(run_probe(bundle, {{"rdma", "/verbs"}}).answer() == json{{"ok", false}, {"errno", "EAGAIN"}});
    resources["rdma"] = {{"mlx99", {{"hcaHandles", 0}}}};
    const Outcome refused = run(bundle);
    CHECK(refused.status == 1);
    CHECK_MESSAGE(refused.says("linux.resources.rdma.mlx99: write 'mlx99 hca_handle=0' to rdma.max: "), refused.err);
    CHECK(refused.says("hint: /sys/class/infiniband"));
}
