// The rules for config.json. Those for resources and seccomp have files of their own.
#include "spec/validate.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cerrno>
#include <cstdint>
#include <set>

#include "base/units.hpp"
#include "pinfold/result.hpp"
#include "spec/resources.hpp"
#include "spec/words.hpp"

namespace pinfold {

// The rules for a process: what execve, setrlimit, sched_setattr and their like would refuse or misread.

namespace {

constexpr auto kRlimits = std::to_array<std::string_view>(
    {"RLIMIT_AS", "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_LOCKS", "RLIMIT_MEMLOCK",
     "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_RSS", "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
     "RLIMIT_SIGPENDING", "RLIMIT_STACK"});

constexpr auto kIoClasses =
    std::to_array<std::string_view>({"IOPRIO_CLASS_RT", "IOPRIO_CLASS_BE", "IOPRIO_CLASS_IDLE"});

constexpr auto kSchedulerPolicies = std::to_array<std::string_view>(
    {"SCHED_OTHER", "SCHED_FIFO", "SCHED_RR", "SCHED_BATCH", "SCHED_ISO", "SCHED_IDLE", "SCHED_DEADLINE"});

constexpr auto kSchedulerFlags = std::to_array<std::string_view>(
    {"SCHED_FLAG_RESET_ON_FORK", "SCHED_FLAG_RECLAIM", "SCHED_FLAG_DL_OVERRUN", "SCHED_FLAG_KEEP_POLICY",
     "SCHED_FLAG_KEEP_PARAMS", "SCHED_FLAG_UTIL_CLAMP_MIN", "SCHED_FLAG_UTIL_CLAMP_MAX"});

void validate_args(const std::vector<std::string>& args, std::string path, Problems& problems) {
    if (args.empty()) problems.add(std::move(path), "missing, required: the program to run and its arguments");
    else if (args[0].empty()) problems.add(element_path(path, 0), expected_but_found("", "the program to run"));
}

// Names are taken as they come: engines pass on what images hold, and the kernel does not mind.
void validate_env(const std::vector<std::string>& env, std::string_view path, Problems& problems) {
    for (size_t i = 0; i < env.size(); ++i) {
        const size_t name_length = env[i].find('=');
        if (name_length == 0 || name_length == std::string::npos) {
            problems.add(element_path(path, i), expected_but_found(env[i], "NAME=VALUE"));
        }
    }
}

void validate_rlimits(const std::vector<Rlimit>& rlimits, std::string_view path, Problems& problems) {
    std::bitset<kRlimits.size()> seen;
    for (size_t i = 0; i < rlimits.size(); ++i) {
        const Rlimit& rlimit = rlimits[i];
        const size_t type = position_of(rlimit.type, kRlimits);
        const std::string at = element_path(path, i);
        if (type == kRlimits.size()) problems.add(member_path(at, "type"), expected_but_found(rlimit.type, kRlimits));
        else if (seen[type]) problems.add(member_path(at, "type"), concat(rlimit.type, " is given twice"));
        else seen.set(type);
        if (rlimit.soft > rlimit.hard && !problems.has(member_path(at, "hard"))) {
            problems.add(member_path(at, "soft"),
                         expected_but_found(rlimit.soft, concat("at most the hard limit, ", rlimit.hard)));
        }
    }
}

// The last number is no id: to the kernel it means "as before", which would be root.
void validate_user(const User& user, const std::string& at, Problems& problems) {
    constexpr uint32_t kHighestId = UINT32_MAX - 1;
    require_range(member_path(at, "uid"), user.uid, 0, kHighestId, problems);
    require_range(member_path(at, "gid"), user.gid, 0, kHighestId, problems);
    const std::string gids = member_path(at, "additionalGids");
    for (size_t i = 0; i < user.additional_gids.size(); ++i) {
        require_range(element_path(gids, i), user.additional_gids[i], 0, kHighestId, problems);
    }
    if (user.umask) require_range(member_path(at, "umask"), *user.umask, 0, 0777, problems);
}

void validate_io_priority(const IoPriority& io_priority, std::string_view at, Problems& problems) {
    require_known(member_path(at, "class"), io_priority.io_class, kIoClasses, problems);
    require_range(member_path(at, "priority"), io_priority.priority, 0, 7, problems);
}

// The kernel takes a priority for the real-time policies alone, and times for SCHED_DEADLINE alone.
void validate_scheduler(const Scheduler& scheduler, std::string_view at, Problems& problems) {
    require_known(member_path(at, "policy"), scheduler.policy, kSchedulerPolicies, problems);
    require_all_known(member_path(at, "flags"), scheduler.flags, kSchedulerFlags, problems);
    require_range(member_path(at, "nice"), scheduler.nice, -20, 19, problems);
    const bool real_time = scheduler.policy == "SCHED_FIFO" || scheduler.policy == "SCHED_RR";
    if (real_time) {
        require_range(member_path(at, "priority"), scheduler.priority, 1, 99, problems);
    } else if (scheduler.priority != 0) {
        problems.add(member_path(at, "priority"),
                     expected_but_found(scheduler.priority, "0, except for SCHED_FIFO and SCHED_RR"));
    }
    const bool has_times = scheduler.runtime != 0 || scheduler.deadline != 0 || scheduler.period != 0;
    if (has_times && scheduler.policy != "SCHED_DEADLINE") {
        problems.add(std::string(at), "runtime, deadline and period are for SCHED_DEADLINE only");
    }
}

}  // namespace

void validate_process(const Process& process, std::string_view at, Problems& problems) {
    validate_args(process.args, member_path(at, "args"), problems);
    validate_env(process.env, member_path(at, "env"), problems);
    require_absolute(member_path(at, "cwd"), process.cwd, problems);
    validate_rlimits(process.rlimits, member_path(at, "rlimits"), problems);
    if (process.terminal && process.console_size) {  // without a terminal the size is to be ignored
        const std::string size = member_path(at, "consoleSize");
        require_range(member_path(size, "height"), process.console_size->height, 0, 65535, problems);
        require_range(member_path(size, "width"), process.console_size->width, 0, 65535, problems);
    }
    validate_user(process.user, member_path(at, "user"), problems);
    if (process.oom_score_adj) {
        require_range(member_path(at, "oomScoreAdj"), *process.oom_score_adj, -1000, 1000, problems);
    }
    if (process.io_priority) validate_io_priority(*process.io_priority, member_path(at, "ioPriority"), problems);
    if (process.scheduler) validate_scheduler(*process.scheduler, member_path(at, "scheduler"), problems);
    if (process.exec_cpu_affinity) {
        const std::string affinity = member_path(at, "execCPUAffinity");
        require_index_list(member_path(affinity, "initial"), process.exec_cpu_affinity->initial, problems);
        require_index_list(member_path(affinity, "final"), process.exec_cpu_affinity->final, problems);
    }
}

// The rules for the top of config.json.

namespace {

constexpr size_t kLongestHostName = 64;  // the kernel's __NEW_UTS_LEN

bool is_version_number(std::string_view text) {
    const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits && !text.empty() && (text.size() == 1 || text[0] != '0');
}

// A pre-release or build suffix: words of letters, digits and '-', with dots between them.
bool is_version_suffix(std::string_view text) {
    const auto allowed = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    };
    const auto is_word = [&](std::string_view word) {
        return !word.empty() && std::all_of(word.begin(), word.end(), allowed);
    };
    const std::vector<std::string_view> words = split(text, '.');
    return std::all_of(words.begin(), words.end(), is_word);
}

// Semantic version 1.x.y. A newer minor version than ours may name properties that we do not know; those are to be
// ignored anyway.
bool is_supported_version(std::string_view text) {
    const size_t suffix = text.find_first_of("-+");
    const std::vector<std::string_view> numbers = split(text.substr(0, suffix), '.');
    if (numbers.size() != 3 || numbers[0] != "1") return false;
    if (!is_version_number(numbers[1]) || !is_version_number(numbers[2])) return false;
    if (suffix == text.npos) return true;
    const size_t build = text.find('+', suffix);
    if (build != text.npos && !is_version_suffix(text.substr(build + 1))) return false;
    return build == suffix || is_version_suffix(text.substr(suffix + 1, build - suffix - 1));
}

bool has_option(const Mount& mount, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        mount.options, [&](const std::string& option) { return std::ranges::find(words, option) != words.end(); });
}

// What could not be done for such a mount is not left undone.
void validate_mount_options(const Mount& mount, std::string_view at, const Linux& linux_, Problems& problems) {
    const bool is_bind = mount.type == "bind" || has_option(mount, {"bind", "rbind"});
    const bool has_maps = !mount.uid_mappings.empty() || !mount.gid_mappings.empty();
    const bool asks_for_maps = has_option(mount, {"idmap", "ridmap"});
    if ((has_maps || asks_for_maps) && (!is_bind || has_option(mount, {"remount"})))
        problems.add(member_path(at, has_maps ? "uidMappings" : "options"), "ids can be mapped for bind mounts only");
    else if (!has_maps && asks_for_maps && !find_namespace(linux_, NamespaceType::user))
        problems.add(member_path(at, "options"), "idmap needs uidMappings and gidMappings, or a user namespace");
    if (has_option(mount, {"tmpcopyup"}) && (is_bind || mount.type == "cgroup" || has_option(mount, {"remount"})))
        problems.add(member_path(at, "options"), "tmpcopyup needs a new file system, such as a tmpfs");
}

// "/", "//", "/.", "/a/..": what is mounted there would lie below the root that the container has.
bool is_root(std::string_view path) {
    size_t depth = 0;
    for (const std::string_view name : split(path, '/')) {
        if (name == "..") depth -= depth > 0 ? 1 : 0;
        else if (!name.empty() && name != ".") ++depth;
    }
    return depth == 0;
}

// A relative destination is deprecated, but to be taken as relative to "/".
void validate_mount(const Mount& mount, std::string_view at, const Linux& linux_, Problems& problems) {
    if (mount.destination.empty()) problems.add(member_path(at, "destination"), expected_but_found("", "a path"));
    else if (is_root(mount.destination) && !has_option(mount, {"remount"}))
        problems.add(member_path(at, "destination"), expected_but_found(mount.destination, "a path below the root"));
    const bool uids = !mount.uid_mappings.empty();
    const bool gids = !mount.gid_mappings.empty();
    if (uids != gids) {
        problems.add(member_path(at, uids ? "gidMappings" : "uidMappings"),
                     concat("missing, required: ranges, since ", uids ? "uidMappings" : "gidMappings", " has some"));
    }
    validate_mount_options(mount, at, linux_, problems);
    validate_id_mappings(member_path(at, "uidMappings"), mount.uid_mappings, problems);
    validate_id_mappings(member_path(at, "gidMappings"), mount.gid_mappings, problems);
}

void validate_host_name(std::string_view property, std::string_view name, const Linux& linux_, Problems& problems) {
    if (name.empty()) return;
    if (!find_namespace(linux_, NamespaceType::uts)) {
        problems.add(std::string(property), "needs a uts namespace: it would rename the host");
    } else if (name.size() > kLongestHostName) {
        problems.add(std::string(property), expected_but_found(name, concat("at most ", kLongestHostName, " bytes")));
    }
}

void validate_hooks(std::string_view at, const std::vector<Hook>& hooks, Problems& problems) {
    for (size_t i = 0; i < hooks.size(); ++i) {
        const std::string path = element_path(at, i);
        require_absolute(member_path(path, "path"), hooks[i].path, problems);
        if (hooks[i].timeout && *hooks[i].timeout <= 0) {
            problems.add(member_path(path, "timeout"), expected_but_found(*hooks[i].timeout, "seconds, more than 0"));
        }
    }
}

// A layer of protection that is asked for in other words would be missing, and nobody would notice.
void validate_own_annotations(const StringMap& annotations, Problems& problems) {
    static constexpr auto kAnswers = std::to_array<std::string_view>({"true", "false"});
    for (const char* name : {"org.pinfold.strict", "org.pinfold.landlock"}) {
        const auto found = annotations.find(name);
        if (found != annotations.end())
            require_known(member_path("annotations", name), found->second, kAnswers, problems);
    }
    const auto landlock = annotations.find("org.pinfold.landlock");
    const bool is_on = landlock != annotations.end() && landlock->second != "false";
    for (const char* name : {"org.pinfold.landlock.tcp-bind", "org.pinfold.landlock.tcp-connect"}) {
        const auto found = annotations.find(name);
        if (found == annotations.end()) continue;
        const std::string path = member_path("annotations", name);
        if (!parse_ports(found->second))
            problems.add(path, expected_but_found(found->second, "any, none, or TCP ports as in 80,443"));
        if (!is_on) problems.add(path, "needs \"org.pinfold.landlock\": \"true\"");
    }
}

}  // namespace

void validate_spec(const Spec& spec, Problems& problems) {
    if (!is_supported_version(spec.oci_version)) {
        problems.add("ociVersion", expected_but_found(spec.oci_version, "a semantic version 1.x.y"));
    }
    if (spec.root.path.empty()) problems.add("root.path", "missing, required: the path of the root file system");
    for (size_t i = 0; i < spec.mounts.size(); ++i) {
        validate_mount(spec.mounts[i], element_path("mounts", i), spec.linux_, problems);
    }
    if (spec.process) validate_process(*spec.process, "process", problems);
    else problems.add("process", "missing, required: the process to run");
    validate_host_name("hostname", spec.hostname, spec.linux_, problems);
    validate_host_name("domainname", spec.domainname, spec.linux_, problems);
    for (const HookKind& kind : kHookKinds) {
        validate_hooks(member_path("hooks", kind.name), spec.hooks.*kind.list, problems);
    }
    if (spec.annotations.contains("")) problems.add(member_path("annotations", ""), "a name must not be empty");
    validate_own_annotations(spec.annotations, problems);
    validate_linux(spec.linux_, problems);
}

void validate_bundle(const Spec& spec, const std::string& bundle, Problems& problems) {
    if (spec.root.path.empty()) return;  // said by validate_spec
    const std::string root = spec.root.path.starts_with('/') ? spec.root.path : concat(bundle, '/', spec.root.path);
    struct stat info {};
    if (::stat(root.c_str(), &info) != 0) {
        problems.add("root.path", errno_error(root).message);
    } else if (!S_ISDIR(info.st_mode)) {
        problems.add("root.path", concat(root, ": not a directory"));
    }
}

const Namespace* find_namespace(const Linux& linux_, NamespaceType type) {
    const auto it = std::find_if(linux_.namespaces.begin(), linux_.namespaces.end(),
                                 [&](const Namespace& ns) { return ns.type == type; });
    return it == linux_.namespaces.end() ? nullptr : &*it;
}

// Namespaces and what belongs to one: id mappings and clock offsets.

namespace {

constexpr size_t kMostMappings = 340;        // user_namespaces(7)
constexpr uint64_t kIdsInAll = 0xffff'ffff;  // the last 32-bit number is no id
constexpr uint32_t kLastNanosecond = 999'999'999;

bool overlap(uint64_t first, uint64_t second, uint64_t first_size, uint64_t second_size) {
    return first < second + second_size && second < first + first_size;
}

void validate_id_mapping(const IdMapping& mapping, std::string_view at, Problems& problems) {
    if (mapping.size == 0) problems.add(member_path(at, "size"), expected_but_found(0, "1 or more"));
    for (const uint64_t first : {mapping.container_id, mapping.host_id}) {
        if (first + mapping.size > kIdsInAll) {
            problems.add(std::string(at), concat(mapping.size, " ids from ", first, " on go beyond the last id"));
        }
    }
}

void require_no_overlap(std::string_view path, const std::vector<IdMapping>& mappings, size_t index,
                        Problems& problems) {
    const IdMapping& later = mappings[index];
    for (size_t i = 0; i < index; ++i) {
        const IdMapping& earlier = mappings[i];
        const bool inside = overlap(earlier.container_id, later.container_id, earlier.size, later.size);
        const bool outside = overlap(earlier.host_id, later.host_id, earlier.size, later.size);
        if (inside || outside) {
            problems.add(element_path(path, index),
                         concat(inside ? "container" : "host", " ids overlap those of ", element_path(path, i)));
            return;
        }
    }
}

// A joined namespace has its mappings already; callers may repeat them.
void validate_user_namespace(std::string_view path, const std::vector<IdMapping>& mappings, const Namespace* user,
                             Problems& problems) {
    if (!user && !mappings.empty()) {
        problems.add(std::string(path), "needs a user namespace in linux.namespaces");
    } else if (user && user->path.empty() && mappings.empty()) {
        problems.add(std::string(path), "missing, required: at least one range for the new user namespace");
    }
    validate_id_mappings(path, mappings, problems);
}

void validate_time_offsets(const Linux& linux_, Problems& problems) {
    if (linux_.time_offsets.empty()) return;
    const Namespace* time = find_namespace(linux_, NamespaceType::time);
    if (!time || !time->path.empty()) {
        problems.add("linux.timeOffsets", "needs a new time namespace in linux.namespaces");
    }
    for (const auto& [clock, offset] : linux_.time_offsets) {
        const std::string at = member_path("linux.timeOffsets", clock);
        if (clock != "boottime" && clock != "monotonic") {
            problems.add(at, "no such clock, allowed: boottime, monotonic");
        }
        require_range(member_path(at, "nanosecs"), offset.nanosecs, 0, kLastNanosecond, problems);
    }
}

}  // namespace

void validate_id_mappings(std::string_view path, const std::vector<IdMapping>& mappings, Problems& problems) {
    if (mappings.size() > kMostMappings) {
        return problems.add(std::string(path),
                            concat("found ", mappings.size(), " ranges, allowed: at most ", kMostMappings));
    }
    for (size_t i = 0; i < mappings.size(); ++i) {
        validate_id_mapping(mappings[i], element_path(path, i), problems);
        require_no_overlap(path, mappings, i, problems);
    }
}

static void validate_namespaces(const Linux& linux_, Problems& problems) {
    std::bitset<8> seen;
    const Namespace* user = find_namespace(linux_, NamespaceType::user);
    for (size_t i = 0; i < linux_.namespaces.size(); ++i) {
        const Namespace& ns = linux_.namespaces[i];
        const std::string at = element_path("linux.namespaces", i);
        const auto type = static_cast<size_t>(ns.type);
        // A type that could not be read is no namespace at all.
        if (problems.has(member_path(at, "type"))) continue;
        if (seen[type]) problems.add(member_path(at, "type"), "this type is given twice");
        seen.set(type);
        if (!ns.path.empty()) require_absolute(member_path(at, "path"), ns.path, problems);
        // Members of a new one have no rights over the pid namespace, and must not be seen there half made.
        if (ns.type == NamespaceType::pid && !ns.path.empty() && user != nullptr && user->path.empty())
            problems.add(member_path(at, "path"), "is joined with the user namespace that owns it, not with a new one");
    }
    validate_user_namespace("linux.uidMappings", linux_.uid_mappings, user, problems);
    validate_user_namespace("linux.gidMappings", linux_.gid_mappings, user, problems);
    validate_time_offsets(linux_, problems);
}

// Sysctl: only settings that belong to a namespace of the container; all others are the host's.

namespace {

struct SysctlOwner {
    std::string_view prefix;
    NamespaceType type;
    std::string_view what;  // with its article
};

constexpr auto kOwners = std::to_array<SysctlOwner>({{"net/", NamespaceType::network, "a network"},
                                                     {"kernel/msg", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/shm", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/sem", NamespaceType::ipc, "an ipc"},
                                                     {"fs/mqueue/", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/domainname", NamespaceType::uts, "a uts"}});

// As sysctl(8) reads a name: its first separator says which of '.' and '/' is the separator, and the other one is a
// part of names ("net/ipv4/conf/eth0.1/forwarding").
std::string sysctl_file(std::string name) {
    const size_t separator = name.find_first_of("./");
    if (separator == name.npos || name[separator] == '/') return name;
    for (char& c : name) c = c == '.' ? '/' : c == '/' ? '.' : c;
    return name;
}

// Nothing that leaves /proc/sys or goes back up in it: "net/../kernel/core_pattern" is no setting of the network.
bool is_plain_path(std::string_view file) {
    const std::vector<std::string_view> components = split(file, '/');
    return std::none_of(components.begin(), components.end(),
                        [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

std::string refusal(const std::string& file, const Linux& linux_) {
    if (!is_plain_path(file)) return "not the name of a setting";
    if (file == "kernel/hostname") return "to be set with the property hostname";
    const auto owner = std::find_if(kOwners.begin(), kOwners.end(),
                                    [&](const SysctlOwner& candidate) { return file.starts_with(candidate.prefix); });
    if (owner == kOwners.end()) return "belongs to no namespace: it would change the host";
    if (!find_namespace(linux_, owner->type)) {
        return concat("needs ", owner->what, " namespace: it would change the host");
    }
    return {};
}

}  // namespace

static void validate_sysctl(const Linux& linux_, Problems& problems) {
    for (const auto& [name, value] : linux_.sysctl) {
        std::string message = refusal(sysctl_file(name), linux_);
        if (!message.empty()) problems.add(member_path("linux.sysctl", name), std::move(message));
    }
}

// The rest of the section.

namespace {

// The specification names the first four; callers also send the recursive forms that mount(8) knows.
constexpr auto kPropagations = std::to_array<std::string_view>(
    {"private", "shared", "slave", "unbindable", "rprivate", "rshared", "rslave", "runbindable"});

constexpr auto kPersonalities = std::to_array<std::string_view>({"LINUX", "LINUX32"});

constexpr auto kMemoryPolicies =
    std::to_array<std::string_view>({"MPOL_DEFAULT", "MPOL_BIND", "MPOL_INTERLEAVE", "MPOL_WEIGHTED_INTERLEAVE",
                                     "MPOL_PREFERRED", "MPOL_PREFERRED_MANY", "MPOL_LOCAL"});

constexpr auto kMemoryPolicyFlags =
    std::to_array<std::string_view>({"MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES"});

// dev_t, as the kernel has it: 12 bits and 20 bits.
constexpr int64_t kHighestMajor = (1 << 12) - 1;
constexpr int64_t kHighestMinor = (1 << 20) - 1;

constexpr size_t kLongestInterfaceName = 15;

bool is_one_component(std::string_view name) {
    return name.find('/') == std::string_view::npos && name != "." && name != "..";
}

void validate_devices(const std::vector<Device>& devices, Problems& problems) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const Device& device = devices[i];
        const std::string at = element_path("linux.devices", i);
        require_absolute(member_path(at, "path"), device.path, problems);
        require_range(member_path(at, "major"), device.major, 0, kHighestMajor, problems);
        require_range(member_path(at, "minor"), device.minor, 0, kHighestMinor, problems);
        // Podman sends the whole st_mode, type included; the type is said elsewhere.
        if (device.file_mode) require_range(member_path(at, "fileMode"), *device.file_mode, 0, 0177777, problems);
    }
}

void validate_net_device_name(std::string path, std::string_view name, Problems& problems) {
    if (name.empty() || name.size() > kLongestInterfaceName || !is_one_component(name)) {
        problems.add(std::move(path), expected_but_found(name, "an interface name: 1 to 15 bytes, no '/'"));
    }
}

// In a network that the container does not have to itself, a move would take the device from the host and give it back
// under another name, or to others.
void validate_net_devices(const Linux& linux_, Problems& problems) {
    if (linux_.net_devices.empty()) return;
    if (find_namespace(linux_, NamespaceType::network) == nullptr) {
        problems.add("linux.netDevices", "needs a network namespace in linux.namespaces");
    }
    std::set<std::string_view> names;
    for (const auto& [host_name, device] : linux_.net_devices) {
        const std::string at = member_path("linux.netDevices", host_name);
        validate_net_device_name(at, host_name, problems);
        if (!device.name.empty()) validate_net_device_name(member_path(at, "name"), device.name, problems);
        const std::string& name = device.name.empty() ? host_name : device.name;
        if (!names.insert(name).second) problems.add(at, concat("a second device of the name ", name));
    }
}

void validate_cgroups_path(const std::string& path, Problems& problems) {
    const std::vector<std::string_view> components = split(path, '/');
    if (std::find(components.begin(), components.end(), "..") != components.end()) {
        problems.add("linux.cgroupsPath", expected_but_found(path, "a path without .."));
    }
}

void validate_memory_policy(const MemoryPolicy& policy, Problems& problems) {
    require_known("linux.memoryPolicy.mode", policy.mode, kMemoryPolicies, problems);
    require_all_known("linux.memoryPolicy.flags", policy.flags, kMemoryPolicyFlags, problems);
    const bool takes_none = policy.mode == "MPOL_DEFAULT" || policy.mode == "MPOL_LOCAL";
    const bool may_be_empty = takes_none || policy.mode == "MPOL_PREFERRED";
    require_index_list("linux.memoryPolicy.nodes", policy.nodes, problems);
    if (takes_none && !policy.nodes.empty()) {
        problems.add("linux.memoryPolicy.nodes", expected_but_found(policy.nodes, concat("none with ", policy.mode)));
    } else if (!may_be_empty && policy.nodes.empty()) {
        problems.add("linux.memoryPolicy.nodes", concat("missing, required: a list such as 0-3,7 with ", policy.mode));
    }
}

void validate_intel_rdt(const IntelRdt& rdt, Problems& problems) {
    if (!is_one_component(rdt.clos_id))
        problems.add("linux.intelRdt.closID", expected_but_found(rdt.clos_id, "a name without '/'"));
    const std::string& schema = rdt.mem_bw_schema;
    if (!schema.empty() && (!schema.starts_with("MB:") || schema.find('\n') != std::string::npos)) {
        problems.add("linux.intelRdt.memBwSchema", expected_but_found(schema, "one line that begins with MB:"));
    }
}

}  // namespace

Words memory_policy_modes() { return kMemoryPolicies; }
Words memory_policy_flags() { return kMemoryPolicyFlags; }

void validate_linux(const Linux& linux_, Problems& problems) {
    validate_namespaces(linux_, problems);
    validate_devices(linux_.devices, problems);
    validate_net_devices(linux_, problems);
    validate_cgroups_path(linux_.cgroups_path, problems);
    validate_resources(linux_.resources, "linux.resources", problems);
    if (!linux_.rootfs_propagation.empty()) {
        require_known("linux.rootfsPropagation", linux_.rootfs_propagation, kPropagations, problems);
    }
    if (linux_.seccomp) validate_seccomp(*linux_.seccomp, problems);
    validate_sysctl(linux_, problems);
    require_all_absolute("linux.maskedPaths", linux_.masked_paths, problems);
    require_all_absolute("linux.readonlyPaths", linux_.readonly_paths, problems);
    if (linux_.intel_rdt) validate_intel_rdt(*linux_.intel_rdt, problems);
    if (linux_.memory_policy) validate_memory_policy(*linux_.memory_policy, problems);
    if (linux_.personality) {
        require_known("linux.personality.domain", linux_.personality->domain, kPersonalities, problems);
        if (!linux_.personality->flags.empty()) {
            problems.add("linux.personality.flags", expected_but_found(linux_.personality->flags[0], "none"));
        }
    }
}

}  // namespace pinfold
