// From a validated config and the host's facts to the plan.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/namespaces.hpp"
#include "plan/plan.hpp"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

namespace pinfold {

namespace {

constexpr const char* kOwnBinary = "/proc/self/exe";

// From a read-only mount, or from a sealed copy, as pinfold starts itself again where it has to
// (kernel/own_binary.hpp).
bool is_readonly(const UniqueFd& file) {
    struct statvfs info {};
    const int asked = file ? ::fstatvfs(file.get(), &info) : ::statvfs(kOwnBinary, &info);
    return (asked == 0 && (info.f_flag & ST_RDONLY) != 0) || (file && is_sealed(file.get()));
}

void look_at_own_binary(HostFacts& facts) {
    const UniqueFd file(::open(kOwnBinary, O_RDONLY | O_CLOEXEC));  // empty: it can be executed, but not be read
    struct stat info {};
    const bool is_known = (file ? ::fstat(file.get(), &info) : ::stat(kOwnBinary, &info)) == 0;
    facts.binary_owner = is_known ? info.st_uid : 0;
    facts.binary_mode = is_known ? info.st_mode : 0777;  // unknown: protect it
    facts.binary_is_readonly = is_readonly(file);
}

// user_namespaces(7): whoever made the namespace without rights had to.
bool denies_set_groups() {
    const Result<std::string> word = read_file("/proc/self/setgroups");
    return word && word->starts_with("deny");
}

}  // namespace

Result<HostFacts> gather_host_facts() {
    HostFacts facts;
    facts.uid = ::geteuid();
    facts.gid = ::getegid();
    facts.initial_user_namespace = TRY(in_initial_user_namespace());
    if (!facts.initial_user_namespace) {
        facts.owns_mounts = owns_mount_namespace();
        facts.may_set_groups = !denies_set_groups();
    }
    facts.capabilities = TRY(own_permitted_capabilities());
    facts.cgroup = TRY_IN("find the cgroups", find_cgroup_host());
    look_at_own_binary(facts);
    facts.has_memory_programs = make_memory_program().has_value();
    return facts;
}

// Namespaces and id maps.

namespace {

std::vector<IdRange> ranges(const std::vector<IdMapping>& mappings) {
    std::vector<IdRange> result;
    for (const IdMapping& mapping : mappings) result.push_back({mapping.container_id, mapping.host_id, mapping.size});
    return result;
}

bool maps_only(const std::vector<IdRange>& map, uint32_t id) {
    return map.size() == 1 && map[0].count == 1 && map[0].outside == id;
}

}  // namespace

uint64_t namespace_flag(NamespaceType type) {
    switch (type) {
        case NamespaceType::mount: return CLONE_NEWNS;
        case NamespaceType::pid: return CLONE_NEWPID;
        case NamespaceType::network: return CLONE_NEWNET;
        case NamespaceType::uts: return CLONE_NEWUTS;
        case NamespaceType::ipc: return CLONE_NEWIPC;
        case NamespaceType::user: return CLONE_NEWUSER;
        case NamespaceType::cgroup: return CLONE_NEWCGROUP;
        case NamespaceType::time: return CLONE_NEWTIME;
    }
    return 0;
}

NamespacePlan plan_namespaces(const Linux& config, const HostFacts& host) {
    NamespacePlan plan;
    for (const Namespace& one : config.namespaces) {
        const uint64_t flag = namespace_flag(one.type);
        if (!one.path.empty()) plan.join.push_back({flag, one.path});
        else if (one.type == NamespaceType::cgroup) plan.create_in_child |= flag;
        else if (one.type == NamespaceType::time) plan.create_time = true;
        else plan.create |= flag;
    }
    if (plan.creates(CLONE_NEWUSER)) {
        plan.create_in_child |= plan.create & CLONE_NEWIPC;
        plan.create &= ~uint64_t{CLONE_NEWIPC};
    }
    for (const auto& [clock, offset] : config.time_offsets) plan.clock_offsets[clock] = {offset.secs, offset.nanosecs};
    plan.user_before_time = plan.create_time && plan.creates(CLONE_NEWUSER) && !host.is_root();
    return plan;
}

IdMaps plan_id_maps(const std::vector<IdMapping>& uids, const std::vector<IdMapping>& gids, const HostFacts& host) {
    IdMaps maps{ranges(uids), ranges(gids), false, !host.may_set_groups};
    if (host.is_root()) return maps;
    // Without privileges the kernel accepts one line that maps the caller's own id, and for groups only once
    // setgroups is denied; the setuid helpers accept what /etc/subuid and /etc/subgid grant.
    maps.by_helper = !maps_only(maps.uids, host.uid) || !maps_only(maps.gids, host.gid);
    maps.deny_setgroups = !maps.by_helper;
    return maps;
}

// All of it.

namespace {

constexpr size_t kEveryCpu = 128;  // words: 8192 CPUs, the most that Linux can be built for

RootRequest plan_root(const Spec& spec, const PlanOptions& options) {
    static const std::map<std::string, uint64_t> kPropagation = {
        {"private", MS_PRIVATE}, {"slave", MS_SLAVE}, {"shared", MS_SHARED}, {"unbindable", MS_UNBINDABLE}};
    RootRequest root;
    root.path = spec.root.path.starts_with('/') ? spec.root.path : concat(options.bundle, "/", spec.root.path);
    if (options.sandbox) root.made = options.sandbox->root;
    if (options.sandbox && !options.sandbox->root_path.empty()) root.path = options.sandbox->root_path;
    root.readonly = spec.root.readonly;
    root.pivot = options.pivot;
    std::string propagation = spec.linux_.rootfs_propagation;
    root.recursive_propagation = propagation.starts_with('r');
    if (root.recursive_propagation) propagation.erase(0, 1);
    if (const auto found = kPropagation.find(propagation); found != kPropagation.end())
        root.propagation = found->second;
    return root;
}

std::vector<SysctlSetting> plan_sysctls(const StringMap& sysctl) {
    std::vector<SysctlSetting> settings;
    for (const auto& [key, value] : sysctl) {
        // "net.ipv4.conf.eth0/1.x" is written with dots or with slashes; the first separator says which it is.
        std::string path = key;
        const size_t separator = path.find_first_of("./");
        if (separator != std::string::npos && path[separator] == '.') {
            for (char& c : path) c = c == '.' ? '/' : c == '/' ? '.' : c;
        }
        settings.push_back({key, concat("sys/", path), value});
    }
    return settings;
}

// Container root can write pinfold's file if it is, on the host, the file's owner, or if just anyone can.
bool binary_is_reachable(const std::optional<IdMaps>& maps, const HostFacts& host) {
    if (host.binary_is_readonly) return false;
    if (!maps || (host.binary_mode & 0022) != 0) return true;
    return std::any_of(maps->uids.begin(), maps->uids.end(), [&](const IdRange& range) {
        return host.binary_owner >= range.outside && host.binary_owner - range.outside < range.count;
    });
}

// Root and mounts belong to a mount namespace of the container's own: elsewhere they would change what others see.
Result<void> check_mount_namespace(const Spec& spec) {
    const auto& namespaces = spec.linux_.namespaces;
    const auto mount = std::find_if(namespaces.begin(), namespaces.end(),
                                    [](const Namespace& one) { return one.type == NamespaceType::mount; });
    if (mount == namespaces.end())
        return plain_error("linux.namespaces: a mount namespace is missing, and root and mounts need one");
    const bool has_own = !spec.mounts.empty() || !spec.linux_.masked_paths.empty() ||
                         !spec.linux_.readonly_paths.empty() || spec.root.readonly;
    if (mount->path.empty() || !has_own) return {};
    return plain_error(
        "linux.namespaces: a joined mount namespace is used as it is, so mounts, maskedPaths, readonlyPaths and "
        "root.readonly must not be set");
}

void plan_exec_cpus(const Process& process, ExecPlan& plan) {
    if (!process.exec_cpu_affinity) return;
    const ExecCpuAffinity& affinity = *process.exec_cpu_affinity;
    plan.initial_cpus = parse_index_list(affinity.initial).value_or(BitMask());
    plan.final_cpus = parse_index_list(affinity.final).value_or(BitMask());
    // A process keeps the CPUs of the one that started it: what is asked for the beginning alone must end. The kernel
    // leaves out what the cgroup does not have.
    if (!plan.initial_cpus.empty() && plan.final_cpus.empty()) plan.final_cpus.assign(kEveryCpu, ~0UL);
}

std::string keyring_name(const std::string& id) { return concat("_ses.", id); }

// The payload's uid as the host sees it; nothing for the host's root, and where the container's ids are not ours to
// know.
std::optional<uid_t> host_uid(const ProcessPlan& process, const NamespacePlan& namespaces,
                              const std::optional<IdMaps>& maps) {
    const uid_t uid = process.identity.uid;
    if (namespaces.joins(CLONE_NEWUSER)) return std::nullopt;
    if (!maps) return uid == 0 ? std::nullopt : std::optional(uid);
    for (const IdRange& range : maps->uids) {
        if (uid >= range.inside && uid - range.inside < range.count) return range.outside + (uid - range.inside);
    }
    return std::nullopt;
}

std::optional<uid_t> plan_stream_owner(const ProcessPlan& process, const NamespacePlan& namespaces,
                                       const std::optional<IdMaps>& maps) {
    return process.terminal ? std::nullopt : host_uid(process, namespaces, maps);
}

bool is_writable_cgroup_mount(const Mount& mount) {
    return mount.type == "cgroup" && mount.destination == "/sys/fs/cgroup" &&
           std::find(mount.options.begin(), mount.options.end(), "ro") == mount.options.end();
}

// A payload that may write to its part of the hierarchy, and sees no other, is to make groups below its own.
std::optional<uid_t> plan_group_owner(const Spec& spec, const Plan& plan) {
    const bool writable = std::any_of(spec.mounts.begin(), spec.mounts.end(), is_writable_cgroup_mount);
    if (!writable || !plan.namespaces.creates(CLONE_NEWCGROUP)) return std::nullopt;
    return host_uid(plan.process, plan.namespaces, plan.id_maps);
}

bool asks_for_receipt(const Spec& spec) {
    const auto found = spec.annotations.find(kStrictAnnotation);
    return found != spec.annotations.end() && found->second == "true";
}

// Only who gains no rights by executing a program may lay rules on itself.
Result<void> add_landlock(const Spec& spec, ProcessPlan& process) {
    process.landlock = TRY(plan_landlock(spec));
    if (process.landlock) process.no_new_privileges = true;
    return {};
}

}  // namespace

bool forbids_keys(const std::optional<Seccomp>& profile) {
    static constexpr std::string_view kCalls[] = {"keyctl", "add_key", "request_key"};
    const auto denies = [](std::string_view action) {
        return action == "SCMP_ACT_ERRNO" || action == "SCMP_ACT_TRAP" || action.starts_with("SCMP_ACT_KILL");
    };
    const auto spares_keys = [&](const SyscallRule& rule) {
        return denies(rule.action) || std::ranges::find_first_of(rule.names, kCalls) == rule.names.end();
    };
    return profile && denies(profile->default_action) && std::ranges::all_of(profile->syscalls, spares_keys);
}

bool NamespacePlan::joins(uint64_t flag) const {
    return std::any_of(join.begin(), join.end(), [flag](const NamespaceToJoin& one) { return one.flag == flag; });
}

bool Plan::makes_network_ahead() const {
    const bool is_new = (namespaces.create & CLONE_NEWNET) != 0 && (namespaces.create & CLONE_NEWUSER) == 0;
    return NetworkAhead::is_possible() && is_new && !namespaces.needs_joiner() && net_devices.empty();
}

bool Plan::new_mount_namespace() const { return namespaces.creates(CLONE_NEWNS); }

Result<Plan> make_plan(const Spec& spec, const PlanOptions& options, const HostFacts& host) {
    const Linux& config = spec.linux_;
    Plan plan;
    TRY(check_mount_namespace(spec));
    plan.id = options.id;
    plan.bundle = options.bundle;
    plan.namespaces = plan_namespaces(config, host);
    const bool new_user = plan.namespaces.creates(CLONE_NEWUSER);
    if (new_user) plan.id_maps = plan_id_maps(config.uid_mappings, config.gid_mappings, host);
    plan.parent_opens_sources = new_user && host.may_mount();
    // A user can have few keyrings, and needs them elsewhere: a sandbox takes one only if its profile lets it at keys.
    const bool is_keyless = options.sandbox && forbids_keys(options.sandbox->profile);
    if (options.new_keyring && !is_keyless) plan.keyring = keyring_name(options.id);
    for (const auto& [name, device] : config.net_devices) {
        plan.net_devices.push_back({name, device.name.empty() ? name : device.name});
    }
    plan.hostname = spec.hostname;
    plan.domainname = spec.domainname;
    plan.sysctls = plan_sysctls(config.sysctl);
    plan.root = plan_root(spec, options);
    const bool rootless = options.rootless.value_or(host.is_rootless());
    plan.cgroup = TRY(plan_cgroup(config, options.id, host.cgroup, options.cgroup_manager, new_user || rootless));
    plan.mounts = TRY(plan_mounts(spec, options, plan.cgroup));
    plan.mount_label = config.mount_label;
    plan.bind_devices = new_user || host.is_rootless();
    plan_devices(spec, plan);
    plan.masked_paths = config.masked_paths;
    plan.readonly_paths = config.readonly_paths;
    plan.process = plan_process(spec, options.preserve_fds, host);
    plan.process.protect_binary = binary_is_reachable(plan.id_maps, host);
    plan.process.pauses_before_exec = options.receipt || asks_for_receipt(spec);
    TRY(add_landlock(spec, plan.process));
    if (plan.id_maps && plan.id_maps->deny_setgroups) plan.process.identity.set_groups = false;
    plan.stream_owner = plan_stream_owner(plan.process, plan.namespaces, plan.id_maps);
    if (host.is_root()) plan.cgroup.owner = plan_group_owner(spec, plan);
    plan.hooks = spec.hooks;
    plan.seccomp = config.seccomp;
    if (options.sandbox) plan.sandbox_init = options.sandbox->init;
    if (options.sandbox) plan.seccomp = options.sandbox->profile;
    return plan;
}

// Names may be in small letters, and numbers.
static bool may_trace(const std::optional<Process>& process) {
    const std::optional<uint64_t> tracing = capability_bit("CAP_SYS_PTRACE");
    return process && process->capabilities &&
           std::ranges::any_of(process->capabilities->bounding,
                               [&](const std::string& name) { return capability_bit(name) == tracing; });
}

Result<ExecPlan> plan_exec(Spec spec, const std::string& id, const ExecOverrides& overrides, const HostFacts& host) {
    ExecPlan plan;
    plan.others_may_trace = may_trace(spec.process);
    spec.process = overrides.process;
    const NamespacePlan namespaces = plan_namespaces(spec.linux_, host);
    plan.process = plan_process(spec, overrides.preserve_fds, host);
    // A process that joins a container lets nobody but root look at it.
    if (overrides.receipt && !host.is_root())
        return plain_error("--strict: only root can look at a process that joins");
    plan.process.pauses_before_exec = host.is_root() && (overrides.receipt || asks_for_receipt(spec));
    TRY(add_landlock(spec, plan.process));
    plan.user = overrides.user;
    plan_exec_cpus(*spec.process, plan);
    for (const Namespace& one : spec.linux_.namespaces) plan.namespaces |= namespace_flag(one.type);
    if (namespaces.creates(CLONE_NEWUSER)) {
        plan.id_maps = plan_id_maps(spec.linux_.uid_mappings, spec.linux_.gid_mappings, host);
        if (plan.id_maps->deny_setgroups) plan.process.identity.set_groups = false;
    }
    plan.process.protect_binary = binary_is_reachable(plan.id_maps, host);
    const bool keyless = spec.annotations.contains(kSandboxAnnotation) && forbids_keys(spec.linux_.seccomp);
    if (!keyless) plan.keyring = keyring_name(id);
    if (plan.user.empty()) plan.stream_owner = plan_stream_owner(plan.process, namespaces, plan.id_maps);
    plan.seccomp = spec.linux_.seccomp;
    return plan;
}

}  // namespace pinfold
