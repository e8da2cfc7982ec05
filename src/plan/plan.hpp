// The plan: everything that a start will do, resolved before anything is touched. Pure data; parent and child only
// carry it out, and --dry-run tells it.
#pragma once

#include <linux/capability.h>
#include <sys/ioctl.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cgroup/plan.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/container_mounts.hpp"
#include "kernel/credentials.hpp"
#include "kernel/host_proc.hpp"
#include "kernel/id_maps.hpp"
#include "kernel/landlock.hpp"
#include "kernel/namespaces.hpp"
#include "kernel/net_devices.hpp"
#include "kernel/rootfs.hpp"
#include "kernel/scheduling.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// What a plan depends on besides the config: facts about this host and this caller, gathered once.
struct HostFacts {
    uid_t uid = 0;
    gid_t gid = 0;
    uint64_t capabilities = 0;  // permitted, of pinfold itself
    CgroupHost cgroup;
    uid_t binary_owner = 0;  // of /proc/self/exe
    mode_t binary_mode = 0;
    bool binary_is_readonly = false;  // whatever its mode
    bool has_memory_programs = true;  // a memfd can be executed

    bool initial_user_namespace = true;
    bool owns_mounts = true;     // false where the mount namespace belongs to a user namespace around
    bool may_set_groups = true;  // false in a user namespace that denies setgroups, and in all below it

    // Root in the user namespace that pinfold was called in, which need not be the host's.
    bool is_root() const { return uid == 0; }
    // Cannot make device nodes, and often no cgroups either.
    bool is_rootless() const { return !is_root() || !initial_user_namespace || !administers(); }
    // The root of a container need not; nor does who has a user namespace of its own, but no mount namespace.
    bool may_mount() const { return is_root() && administers() && owns_mounts; }
    bool administers() const { return (capabilities >> CAP_SYS_ADMIN & 1) != 0; }
};

Result<HostFacts> gather_host_facts();

// A first process of pinfold's own, which starts the payload and keeps the sandbox around it.
struct SandboxInitPlan {
    bool payload = true;                               // false: it only keeps the sandbox, for exec
    bool waits = false;                                // until files were copied in
    bool alone = false;                                // it outlives the process that started it
    std::optional<std::chrono::nanoseconds> lifetime;  // until it ends by itself
    std::optional<std::chrono::nanoseconds> deadline;  // of the payload, should its supervisor not keep it
    std::string script_path;                           // a file to write as the payload's user; empty: none
    std::string script;
};

// What only a sandbox has, besides its configuration.
struct SandboxParts {
    MadeRoot root;
    std::string root_path;  // what that lies over; empty: nothing
    SandboxInitPlan init;
    Seccomp profile;  // instead of the configuration's: one that reports, or records
};

// What the caller adds to the config.
struct PlanOptions {
    std::string id;
    std::string bundle;  // absolute
    CgroupManager cgroup_manager = CgroupManager::cgroupfs;
    std::optional<bool> rootless;  // empty: if the caller is not root
    bool pivot = true;
    bool new_keyring = true;
    unsigned preserve_fds = 0;
    bool receipt = false;  // is to be read before the program is executed, whatever the config says
    std::optional<SandboxParts> sandbox{};
};

// Of what `pinfold sandbox` has made.
inline constexpr const char* kSandboxAnnotation = "org.pinfold.sandbox";
// Of those: what a caller has started whom a policy binds. Such callers have to do with no others.
inline constexpr const char* kBoundAnnotation = "org.pinfold.bound";
// "true": as --strict.
inline constexpr const char* kStrictAnnotation = "org.pinfold.strict";
// "true": Landlock's rules are laid on the payload, and with them no_new_privs. The others: ports, "any" or "none".
inline constexpr const char* kLandlockAnnotation = "org.pinfold.landlock";
inline constexpr const char* kTcpBindAnnotation = "org.pinfold.landlock.tcp-bind";
inline constexpr const char* kTcpConnectAnnotation = "org.pinfold.landlock.tcp-connect";

struct NamespacePlan {
    uint64_t create = 0;  // CLONE_NEW* for the clone itself
    // By the child: only after the clone is it in its cgroup, and only as the user namespace's root does it own
    // the message queues of an ipc namespace.
    uint64_t create_in_child = 0;
    bool create_time = false;  // before the clone: offsets cannot be set afterwards
    std::map<std::string, ClockOffset> clock_offsets;
    std::vector<NamespaceToJoin> join;
    // A time namespace for an unprivileged caller takes the rights of the user namespace, so that comes first.
    bool user_before_time = false;

    bool creates(uint64_t flag) const { return ((create | create_in_child) & flag) != 0; }
    bool joins(uint64_t flag) const;
    // Joining, and shifting clocks, take an extra process between parent and child.
    bool needs_joiner() const { return !join.empty() || create_time; }
};

struct ProcessPlan {
    std::vector<std::string> args;
    std::vector<std::string> env;
    bool add_home = false;  // the config sets no HOME: look it up in the container
    std::string cwd;
    Identity identity;
    std::optional<mode_t> umask;
    CapabilitySets capabilities;
    std::vector<ResourceLimit> rlimits;
    std::optional<int> oom_score_adj;
    std::optional<unsigned long> personality;
    std::optional<SchedulerRequest> scheduler;
    std::optional<IoPriorityRequest> io_priority;
    std::optional<MemoryPolicyRequest> memory_policy;
    bool no_new_privileges = false;
    std::optional<LandlockRules> landlock;
    std::string apparmor_profile;  // empty: as its caller
    std::string selinux_label;     // empty: as the policy says
    bool terminal = false;
    std::optional<winsize> window;
    unsigned preserve_fds = 0;
    bool pauses_before_exec = false;   // until it was read back what it has become
    bool protect_binary = false;       // pinfold's own file could be reached with write access from inside
    bool has_memory_programs = false;  // a memfd can be executed
};

struct Plan {
    std::string id;
    std::string bundle;
    CgroupPlan cgroup;
    NamespacePlan namespaces;
    std::optional<IdMaps> id_maps;
    bool parent_opens_sources = false;
    std::string keyring;  // empty: keep the caller's
    std::vector<NetDeviceMove> net_devices;
    std::string hostname;
    std::string domainname;
    std::vector<SysctlSetting> sysctls;
    RootRequest root;
    std::vector<MountRequest> mounts;
    std::string mount_label;  // SELinux, of file systems that are made for the container
    std::vector<DeviceNode> devices;
    bool bind_devices = false;
    std::vector<Link> links;
    std::vector<std::string> masked_paths;
    std::vector<std::string> readonly_paths;
    std::optional<SandboxInitPlan> sandbox_init;
    ProcessPlan process;
    std::optional<uid_t>
        stream_owner;  // on the host: whom pipes on 0, 1, 2 are given to, so that /dev/stdout can be opened
    Hooks hooks;
    std::optional<Seccomp> seccomp;  // compiled by the parent: a dry run does not need it

    bool new_mount_namespace() const;
    // By a thread of the parent's, which is not in the user namespace that it would have to belong to. Devices are
    // moved into the network of a process: it has to be in there by then.
    bool makes_network_ahead() const;
};

// What exec adds to the configuration of a container that exists.
struct ExecOverrides {
    Process process;
    std::string user;  // to be looked up inside; empty: process.user
    unsigned preserve_fds = 0;
    bool receipt = false;  // is to be read before the program is executed
};

// A further process in a container.
struct ExecPlan {
    ProcessPlan process;
    std::string user;         // to be looked up inside
    BitMask initial_cpus;     // until it is in the container's cgroup; empty: as its caller
    BitMask final_cpus;       // from then on; empty: those of the cgroup
    uint64_t namespaces = 0;  // CLONE_NEW*: what the container has of its own, or has joined
    // In a cgroup namespace of its own, where no group can tell who belongs to it: all that it starts are members, and
    // to leave takes rights that a sandbox has not.
    bool marked = false;
    std::optional<IdMaps> id_maps;
    // The container's own programs, by its configuration: its first process may have given the right up since, and
    // others have kept it.
    bool others_may_trace = false;
    std::string keyring;
    std::optional<uid_t> stream_owner;
    std::optional<Seccomp> seccomp;
};

Result<ExecPlan> plan_exec(Spec spec, const std::string& id, const ExecOverrides& overrides, const HostFacts& host);

Result<Plan> make_plan(const Spec& spec, const PlanOptions& options, const HostFacts& host);

// The parts of make_plan; each reads the config and the facts, and fills its own fields.
NamespacePlan plan_namespaces(const Linux& config, const HostFacts& host);
Result<std::vector<MountRequest>> plan_mounts(const Spec& spec, const PlanOptions& options, const CgroupPlan& cgroup);
// Options that are not the file system's own.
std::vector<std::string_view> mount_option_names();
void plan_devices(const Spec& spec, Plan& plan);
ProcessPlan plan_process(const Spec& spec, unsigned preserve_fds, const HostFacts& host);
// Nothing where none are asked for, or the kernel has none, of which it warns.
Result<std::optional<LandlockRules>> plan_landlock(const Spec& spec);
// Not one call for keys gets past the profile: who is under it needs no keyring of its own.
bool forbids_keys(const std::optional<Seccomp>& profile);
uint64_t namespace_flag(NamespaceType type);
IdMaps plan_id_maps(const std::vector<IdMapping>& uids, const std::vector<IdMapping>& gids, const HostFacts& host);

}  // namespace pinfold
