// The device rules, and the groups that a container sees: neither gives it what it was not given.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "attacks.hpp"

namespace pinfold::integration {

namespace {

struct DeviceRow {
    const char* name;
    mode_t type;
    unsigned major;
    unsigned minor;
};

// Memory, ports, consoles, disks, loop devices, a tunnel, a virtual machine, a file system in user space.
const DeviceRow kDevices[] = {
    {"mem", S_IFCHR, 1, 1},        {"port", S_IFCHR, 1, 4},       {"kmsg", S_IFCHR, 1, 11},  {"tty0", S_IFCHR, 4, 0},
    {"ttyS0", S_IFCHR, 4, 64},     {"sda", S_IFBLK, 8, 0},        {"vda", S_IFBLK, 254, 0},  {"loop0", S_IFBLK, 7, 0},
    {"control", S_IFCHR, 10, 237}, {"tun", S_IFCHR, 10, 200},     {"kvm", S_IFCHR, 10, 232}, {"fuse", S_IFCHR, 10, 229},
    {"mapper", S_IFCHR, 10, 236},  {"nothing", S_IFCHR, 10, 250},
};

// By nodes of the image, and by nodes that the container makes for itself, which it may.
void check_devices_denied(Bundle& bundle, const std::string& rules) {
    std::vector<Command> made;
    std::vector<Command> opened;
    for (const DeviceRow& row : kDevices) {
        const std::string own = std::string("/tmp/") + row.name;
        made.push_back(
            {"mknod", own, row.type == S_IFCHR ? "c" : "b", std::to_string(row.major), std::to_string(row.minor)});
        for (const char* mode : {"ro", "wo", "rw"}) opened.push_back({"open", std::string("/data/") + row.name, mode});
        opened.push_back({"open", own, "rw"});
    }
    std::vector<Command> commands = made;
    commands.insert(commands.end(), opened.begin(), opened.end());
    const Outcome outcome = run_probe(bundle, commands);
    for (size_t i = made.size(); i < commands.size(); ++i) {
        WITHSTANDS(rules + ": " + commands[i][1], outcome.answer(i)["errno"] == "EPERM");
    }
    for (const DeviceRow& row : kDevices) fs::remove(bundle.rootfs() / "tmp" / row.name);
}

// Every file by which a group is changed, in every hierarchy that the host has.
std::vector<Command> attempts_on_groups() {
    std::vector<Command> commands;
    std::vector<std::string> places = {""};
    for (const HostMount& mount : host_mounts()) {
        const std::string base = "/sys/fs/cgroup";
        if (mount.type.starts_with("cgroup") && mount.point.starts_with(base + "/"))
            places.push_back(mount.point.substr(base.size()));
    }
    for (const std::string& place : places) {
        const std::string inside = "/sys/fs/cgroup" + place;
        commands.push_back({"mkdir", inside + "/evil"});
        commands.push_back({"create", inside + "/evil", "x"});
        for (const char* file :
             {"cgroup.procs", "tasks", "cgroup.subtree_control", "release_agent", "notify_on_release", "cgroup.freeze",
              "cgroup.kill", "memory.max", "pids.max", "devices.allow"})
            commands.push_back({"write", inside + "/" + file, "1"});
    }
    return commands;
}

void let_all_capabilities(Bundle& bundle) {
    for (const char* set : {"bounding", "effective", "permitted"}) {
        for (const char* name : {"CAP_DAC_OVERRIDE", "CAP_SYS_ADMIN", "CAP_MKNOD", "CAP_FOWNER"})
            bundle.config["process"]["capabilities"][set].push_back(name);
    }
}

}  // namespace

TEST_CASE("GHSA-g54h-m393-cpwq: a list of devices is what is allowed, also if it denies nothing, or is none") {
    NEEDS_ROOT();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    let_all_capabilities(bundle);
    for (const DeviceRow& row : kDevices) {
        const fs::path path = bundle.rootfs() / "data" / row.name;
        REQUIRE(::mknod(path.c_str(), row.type | 0666, makedev(row.major, row.minor)) == 0);
    }
    bundle.config["linux"]["resources"]["devices"] = json::array();
    check_devices_denied(bundle, "an empty list");
    bundle.config["linux"]["resources"]["devices"] = {
        {{"allow", true}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"access", "rwm"}}};
    check_devices_denied(bundle, "one that is allowed");
    bundle.config["linux"]["resources"]["devices"] = {
        {{"allow", false}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"access", "rwm"}}};
    check_devices_denied(bundle, "one that is denied");
    bundle.config["linux"].erase("resources");
    check_devices_denied(bundle, "no list");
}

TEST_CASE("CVE-2023-25809: a container of a normal user writes to no group") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<Command> commands = attempts_on_groups();
    for (const bool own_namespace : {true, false}) {
        for (const std::string type : {"cgroup", "bind"}) {
            for (const bool rootless : {true, false}) {
                Bundle bundle;
                INFO(type, std::string(own_namespace ? ", with a cgroup namespace" : ""),
                     std::string(rootless ? ", for a normal user" : ", for root"));
                let_all_capabilities(bundle);
                if (own_namespace) bundle.add_namespace("cgroup");
                if (type == "cgroup") bundle.mount("/sys/fs/cgroup", type, type, {"nosuid", "noexec", "nodev", "ro"});
                else bundle.drop_mount("/sys").bind("/sys", "/sys", {"rbind", "nosuid", "noexec", "nodev", "rro"});
                if (rootless) bundle.make_rootless(kNobodySpecial);
                const SpawnOptions spawn{.uid = rootless ? std::optional<uid_t>(kNobodySpecial) : std::nullopt};
                const Outcome outcome = run_probe(bundle, commands, {.spawn = spawn});
                CAPTURE(outcome.err);
                if (outcome.status != 0) WITHSTANDS("the mount", is_refused(outcome, "/sys"));
                for (size_t i = 0; outcome.status == 0 && i < commands.size(); ++i) {
                    WITHSTANDS(commands[i][0] + " " + commands[i][1], outcome.answer(i)["ok"] == false);
                }
                CHECK(cgroups_named("evil").empty());
            }
        }
    }
}

}  // namespace pinfold::integration
