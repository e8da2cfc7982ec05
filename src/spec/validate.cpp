// The rules for config.json but for its linux section: process, version, root, mounts, names, hooks, annotations.
#include "spec/validate.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cerrno>
#include <cstdint>

#include "pinfold/result.hpp"
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

}  // namespace pinfold
