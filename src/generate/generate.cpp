// From five numbers to a configuration, and from that to config.json.
#include "pinfold/generate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.hpp"
#include "json/json.hpp"
#include "spec/write_seccomp.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr const char* kEnvironment[] = {
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/workspace",
    "LANG=C.UTF-8",
};

std::string_view name_of(std::string_view assignment) { return assignment.substr(0, assignment.find('=')); }

std::vector<std::string> environment(const std::vector<std::string>& wanted) {
    std::vector<std::string> env = wanted;
    for (const std::string_view standard : kEnvironment) {
        const auto same = [&](const std::string& one) { return name_of(one) == name_of(standard); };
        if (std::ranges::none_of(wanted, same)) env.emplace_back(standard);
    }
    return env;
}

std::vector<Rlimit> rlimits(const ResourceLimits& limits) {
    const uint64_t disk = limits.disk_mb * kMegabyte;
    return {{"RLIMIT_NPROC", limits.max_processes, limits.max_processes},
            {"RLIMIT_NOFILE", 1024, 4096},
            {"RLIMIT_FSIZE", disk, disk},
            {"RLIMIT_CORE", 0, 0}};
}

Process process(const ResourceLimits& limits, const GenerateOptions& options) {
    Process process;
    process.user = options.user;
    process.args = options.args;
    process.env = environment(options.env);
    process.cwd = options.cwd;
    process.capabilities.emplace();  // of which it has none
    process.rlimits = rlimits(limits);
    process.no_new_privileges = true;
    return process;
}

// A file that holds anything takes a page. Without a limit, empty ones would take as much of the kernel's memory as
// anybody likes.
Mount tmpfs(const char* destination, std::vector<std::string> options, uint64_t size) {
    constexpr uint64_t kPage = 4096, kDirectories = 1024;
    options.push_back(concat("size=", size));
    options.push_back(concat("nr_inodes=", size / kPage + kDirectories));
    return {destination, "tmpfs", "tmpfs", std::move(options), {}, {}};
}

// All that can be written is memory, in file systems of a fixed size, which together have the disk's: /tmp, shared
// memory, which programs take for memory, and the work directory, which has the rest. The user's own are two of them:
// runc before 1.1.8 gives a file system the mode of the directory that it covers, whatever mode is asked for.
std::vector<Mount> mounts(const ResourceLimits& limits, const User& user) {
    const uint64_t disk = limits.disk_mb * kMegabyte;
    const uint64_t temporary = std::min(disk / 4, 64 * kMegabyte);
    const uint64_t shared = std::min(std::clamp(limits.memory_mb / 8, uint64_t{1}, uint64_t{64}) * kMegabyte, disk / 8);
    const std::string uid = concat("uid=", user.uid), gid = concat("gid=", user.gid);
    return {
        {"/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}, {}, {}},
        tmpfs("/dev", {"nosuid", "noexec", "strictatime", "mode=755"}, kMegabyte),
        {"/dev/pts", "devpts", "devpts", {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"}, {}, {}},
        tmpfs("/dev/shm", {"nosuid", "noexec", "nodev", "mode=1777"}, shared),
        tmpfs("/tmp", {"nosuid", "nodev", "mode=1777", uid, gid}, temporary),
        tmpfs(kWorkspace, {"nosuid", "nodev", "mode=1777", uid, gid}, disk - temporary - shared),
    };
}

// No weight for block devices: nothing is written to one, and where the kernel has no file for it, which depends on the
// scheduler of its disks, some runtimes refuse to start.
Resources resources(const ResourceLimits& limits) {
    constexpr uint64_t kPeriod = 100000;  // microseconds
    constexpr double kSharesOfOneCore = 1024;
    Resources resources;
    resources.devices = {{.allow = false, .access = "rwm"}};
    const auto memory = static_cast<int64_t>(limits.memory_mb * kMegabyte);
    resources.memory.limit = memory;
    resources.memory.swap = memory;  // counted with memory: none of it is swapped
    resources.cpu.shares = std::clamp<uint64_t>(std::llround(limits.cpu_cores * kSharesOfOneCore), 2, 262144);
    resources.cpu.period = kPeriod;
    resources.cpu.quota = std::llround(limits.cpu_cores * double{kPeriod});
    resources.pids_limit = static_cast<int64_t>(limits.max_processes);
    return resources;
}

std::vector<Namespace> namespaces(bool own_network) {
    std::vector<Namespace> list = {{NamespaceType::pid, ""},   {NamespaceType::ipc, ""},  {NamespaceType::uts, ""},
                                   {NamespaceType::mount, ""}, {NamespaceType::user, ""}, {NamespaceType::cgroup, ""}};
    if (own_network) list.push_back({NamespaceType::network, ""});
    return list;
}

}  // namespace

Spec generate(const ResourceLimits& limits, const GenerateOptions& options) {
    Spec spec;
    spec.oci_version = "1.0.2";  // has all that is used here, and no runtime is too old for it
    spec.process = process(limits, options);
    spec.root = {options.root, true};
    spec.hostname = "sandbox";
    spec.mounts = mounts(limits, options.user);
    spec.linux_.namespaces = namespaces(!limits.network_enabled);
    spec.linux_.uid_mappings = options.uid_mappings;
    spec.linux_.gid_mappings = options.gid_mappings;
    spec.linux_.resources = resources(limits);
    spec.linux_.masked_paths = {"/proc/acpi",       "/proc/asound",        "/proc/interrupts",  "/proc/kcore",
                                "/proc/keys",       "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
                                "/proc/timer_list", "/proc/timer_stats"};
    spec.linux_.readonly_paths = {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"};
    if (!options.seccomp.default_action.empty()) spec.linux_.seccomp = options.seccomp;
    return spec;
}

// The way back of the parser, for what generate() makes.

template <class Value>
requires(std::integral<Value> || std::same_as<Value, std::string>) static Json to_json(const Value& value) {
    return json_of(value);
}

template <class Value>
static Json to_json(const std::vector<Value>& values) {
    return json_of(values, [](const Value& value) { return to_json(value); });
}

// Members in the order in which they are added; what is not set is left out.
class ConfigObject {
public:
    template <class Value>
    ConfigObject& add(std::string key, const Value& value) {
        members_.push_back({std::move(key), to_json(value)});
        return *this;
    }
    template <class Value>
    ConfigObject& add(std::string key, const std::optional<Value>& value) {
        return value ? add(std::move(key), *value) : *this;
    }
    template <class Value>
    ConfigObject& add_unless_empty(std::string key, const Value& value) {
        return value.empty() ? *this : add(std::move(key), value);
    }
    ConfigObject& add(std::string key, Json value) {
        members_.push_back({std::move(key), std::move(value)});
        return *this;
    }
    Json json() { return {std::move(members_)}; }

private:
    Json::Object members_;
};

static Json to_json(const User& user) {
    return ConfigObject()
        .add("uid", user.uid)
        .add("gid", user.gid)
        .add("umask", user.umask)
        .add_unless_empty("additionalGids", user.additional_gids)
        .json();
}

// All five, also where they are empty: a set that is left out has another meaning to some.
static Json to_json(const Capabilities& sets) {
    return ConfigObject()
        .add("bounding", sets.bounding)
        .add("effective", sets.effective)
        .add("permitted", sets.permitted)
        .add("inheritable", sets.inheritable)
        .add("ambient", sets.ambient)
        .json();
}

static Json to_json(const Rlimit& limit) {
    return ConfigObject().add("type", limit.type).add("soft", limit.soft).add("hard", limit.hard).json();
}

static Json to_json(const Process& process) {
    return ConfigObject()
        .add("terminal", process.terminal)
        .add("user", process.user)
        .add("args", process.args)
        .add("env", process.env)
        .add("cwd", process.cwd)
        .add("capabilities", process.capabilities)
        .add("rlimits", process.rlimits)
        .add("noNewPrivileges", process.no_new_privileges)
        .add("oomScoreAdj", process.oom_score_adj)
        .json();
}

static Json to_json(const Root& root) {
    return ConfigObject().add("path", root.path).add("readonly", root.readonly).json();
}

static Json to_json(const IdMapping& mapping) {
    return ConfigObject()
        .add("containerID", mapping.container_id)
        .add("hostID", mapping.host_id)
        .add("size", mapping.size)
        .json();
}

static Json to_json(const Mount& mount) {
    return ConfigObject()
        .add("destination", mount.destination)
        .add_unless_empty("type", mount.type)
        .add_unless_empty("source", mount.source)
        .add("options", mount.options)
        .add_unless_empty("uidMappings", mount.uid_mappings)
        .add_unless_empty("gidMappings", mount.gid_mappings)
        .json();
}

static Json to_json(const Namespace& one) {
    static constexpr const char* kNames[] = {"mount", "pid", "network", "uts", "ipc", "user", "cgroup", "time"};
    return ConfigObject().add("type", std::string(kNames[size_t(one.type)])).add_unless_empty("path", one.path).json();
}

static Json to_json(const DeviceRule& rule) {
    return ConfigObject().add("allow", rule.allow).add("access", rule.access).json();
}

static Json to_json(const Resources& resources) {
    const MemoryLimits& memory = resources.memory;
    const CpuLimits& cpu = resources.cpu;
    ConfigObject object;
    object.add("devices", resources.devices);
    if (memory.limit) object.add("memory", ConfigObject().add("limit", memory.limit).add("swap", memory.swap).json());
    if (cpu.quota) {
        object.add("cpu",
                   ConfigObject().add("shares", cpu.shares).add("quota", cpu.quota).add("period", cpu.period).json());
    }
    if (resources.pids_limit) object.add("pids", ConfigObject().add("limit", resources.pids_limit).json());
    return object.json();
}

static Json to_json(const Linux& config) {
    return ConfigObject()
        .add("namespaces", config.namespaces)
        .add_unless_empty("uidMappings", config.uid_mappings)
        .add_unless_empty("gidMappings", config.gid_mappings)
        .add_unless_empty("cgroupsPath", config.cgroups_path)
        .add("resources", config.resources)
        .add("maskedPaths", config.masked_paths)
        .add("readonlyPaths", config.readonly_paths)
        .add("seccomp", config.seccomp)
        .json();
}

std::string config_json(const Spec& spec) {
    ConfigObject annotations;
    for (const auto& [key, value] : spec.annotations) annotations.add(key, value);
    ConfigObject config;
    config.add("ociVersion", spec.oci_version)
        .add("process", spec.process)
        .add("root", spec.root)
        .add("hostname", spec.hostname)
        .add("mounts", spec.mounts)
        .add("linux", spec.linux_);
    if (!spec.annotations.empty()) config.add("annotations", annotations.json());
    return json_text(config.json());
}

}  // namespace pinfold
