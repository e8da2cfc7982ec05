// The typed form of an OCI config.json (runtime-spec 1.3, Linux): plain data, no behaviour.
// Names follow the specification; an absent property is an empty optional, vector or string.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pinfold {

using StringMap = std::map<std::string, std::string>;

struct IdMapping {
    uint32_t container_id = 0;
    uint32_t host_id = 0;
    uint32_t size = 0;
};

struct Root {
    std::string path;
    bool readonly = false;
};

struct Mount {
    std::string destination;
    std::string type;
    std::string source;
    std::vector<std::string> options;
    std::vector<IdMapping> uid_mappings;
    std::vector<IdMapping> gid_mappings;
};

struct ConsoleSize {
    uint64_t height = 0;
    uint64_t width = 0;
};

struct User {
    uint32_t uid = 0;
    uint32_t gid = 0;
    std::optional<uint32_t> umask;
    std::vector<uint32_t> additional_gids;
};

// Names as written ("CAP_CHOWN"); what the kernel or the host cannot grant is warned about when planned.
struct Capabilities {
    std::vector<std::string> bounding;
    std::vector<std::string> effective;
    std::vector<std::string> permitted;
    std::vector<std::string> inheritable;
    std::vector<std::string> ambient;
};

struct Rlimit {
    std::string type;  // "RLIMIT_NOFILE"
    uint64_t soft = 0;
    uint64_t hard = 0;
};

struct IoPriority {
    std::string io_class;  // "IOPRIO_CLASS_BE"
    int32_t priority = 0;
};

struct Scheduler {
    std::string policy;  // "SCHED_OTHER"
    int32_t nice = 0;
    int32_t priority = 0;
    std::vector<std::string> flags;  // "SCHED_FLAG_RESET_ON_FORK"
    uint64_t runtime = 0;
    uint64_t deadline = 0;
    uint64_t period = 0;
};

struct ExecCpuAffinity {
    std::string initial;
    std::string final;
};

struct Process {
    bool terminal = false;
    std::optional<ConsoleSize> console_size;
    User user;
    std::vector<std::string> args;
    std::vector<std::string> env;
    std::string cwd;
    std::optional<Capabilities> capabilities;
    std::vector<Rlimit> rlimits;
    bool no_new_privileges = false;
    std::string apparmor_profile;
    std::string selinux_label;
    std::optional<int> oom_score_adj;
    std::optional<IoPriority> io_priority;
    std::optional<Scheduler> scheduler;
    std::optional<ExecCpuAffinity> exec_cpu_affinity;
};

struct Hook {
    std::string path;
    std::vector<std::string> args;
    std::vector<std::string> env;
    std::optional<int64_t> timeout;
};

struct Hooks {
    std::vector<Hook> prestart;
    std::vector<Hook> create_runtime;
    std::vector<Hook> create_container;
    std::vector<Hook> start_container;
    std::vector<Hook> poststart;
    std::vector<Hook> poststop;
};

enum class NamespaceType : uint8_t { mount, pid, network, uts, ipc, user, cgroup, time };

struct Namespace {
    NamespaceType type = NamespaceType::mount;
    std::string path;  // empty: a new one
};

struct Device {
    std::string path;
    char type = 'c';  // c, b, u or p
    int64_t major = 0;
    int64_t minor = 0;
    std::optional<uint32_t> file_mode;
    std::optional<uint32_t> uid;
    std::optional<uint32_t> gid;
};

struct DeviceRule {
    bool allow = false;
    char type = 'a';               // a, b or c
    std::optional<int64_t> major;  // empty: any
    std::optional<int64_t> minor;
    std::string access;  // of r, w, m; empty means all three
};

struct MemoryLimits {
    std::optional<int64_t> limit;
    std::optional<int64_t> reservation;
    std::optional<int64_t> swap;
    std::optional<int64_t> kernel;
    std::optional<int64_t> kernel_tcp;
    std::optional<uint64_t> swappiness;
    std::optional<bool> disable_oom_killer;
    std::optional<bool> use_hierarchy;
    std::optional<bool> check_before_update;
};

struct CpuLimits {
    std::optional<uint64_t> shares;
    std::optional<int64_t> quota;
    std::optional<uint64_t> burst;
    std::optional<uint64_t> period;
    std::optional<int64_t> realtime_runtime;
    std::optional<uint64_t> realtime_period;
    std::string cpus;
    std::string mems;
    std::optional<int64_t> idle;
};

struct BlockIoDeviceWeight {
    int64_t major = 0;
    int64_t minor = 0;
    std::optional<uint16_t> weight;
    std::optional<uint16_t> leaf_weight;
};

struct BlockIoThrottle {
    int64_t major = 0;
    int64_t minor = 0;
    uint64_t rate = 0;
};

struct BlockIoLimits {
    std::optional<uint16_t> weight;
    std::optional<uint16_t> leaf_weight;
    std::vector<BlockIoDeviceWeight> weight_device;
    std::vector<BlockIoThrottle> throttle_read_bps_device;
    std::vector<BlockIoThrottle> throttle_write_bps_device;
    std::vector<BlockIoThrottle> throttle_read_iops_device;
    std::vector<BlockIoThrottle> throttle_write_iops_device;
};

struct HugepageLimit {
    std::string page_size;  // "2MB"
    uint64_t limit = 0;
};

struct NetworkPriority {
    std::string name;
    uint32_t priority = 0;
};

struct NetworkLimits {
    std::optional<uint32_t> class_id;
    std::vector<NetworkPriority> priorities;
};

struct RdmaLimit {
    std::optional<uint32_t> hca_handles;
    std::optional<uint32_t> hca_objects;
};

struct Resources {
    std::vector<DeviceRule> devices;
    MemoryLimits memory;
    CpuLimits cpu;
    std::optional<int64_t> pids_limit;
    BlockIoLimits block_io;
    std::vector<HugepageLimit> hugepage_limits;
    NetworkLimits network;
    std::map<std::string, RdmaLimit> rdma;
    StringMap unified;
};

struct SyscallArg {
    uint32_t index = 0;
    uint64_t value = 0;
    uint64_t value_two = 0;
    std::string op;  // "SCMP_CMP_EQ"
};

struct SyscallRule {
    std::vector<std::string> names;
    std::string action;  // "SCMP_ACT_ALLOW"
    std::optional<uint32_t> errno_ret;
    std::vector<SyscallArg> args;
};

struct Seccomp {
    std::string default_action;
    std::optional<uint32_t> default_errno_ret;
    std::vector<std::string> flags;
    std::string listener_path;
    std::string listener_metadata;
    std::vector<std::string> architectures;
    std::vector<SyscallRule> syscalls;
};

struct Personality {
    std::string domain;  // "LINUX" or "LINUX32"
    std::vector<std::string> flags;
};

struct TimeOffset {
    int64_t secs = 0;
    uint32_t nanosecs = 0;
};

struct MemoryPolicy {
    std::string mode;  // "MPOL_BIND"
    std::string nodes;
    std::vector<std::string> flags;
};

struct IntelRdt {
    std::string clos_id;
    std::vector<std::string> schemata;
    std::string l3_cache_schema;
    std::string mem_bw_schema;
    bool enable_monitoring = false;
};

struct NetDevice {
    std::string name;  // inside the container; empty: as on the host
};

struct Linux {
    std::vector<Namespace> namespaces;
    std::vector<IdMapping> uid_mappings;
    std::vector<IdMapping> gid_mappings;
    std::map<std::string, TimeOffset> time_offsets;
    std::vector<Device> devices;
    std::map<std::string, NetDevice> net_devices;
    std::string cgroups_path;
    Resources resources;
    std::string rootfs_propagation;
    std::optional<Seccomp> seccomp;
    StringMap sysctl;
    std::vector<std::string> masked_paths;
    std::vector<std::string> readonly_paths;
    std::string mount_label;
    std::optional<IntelRdt> intel_rdt;
    std::optional<MemoryPolicy> memory_policy;
    std::optional<Personality> personality;
};

struct Spec {
    std::string oci_version;
    Root root;
    std::vector<Mount> mounts;
    std::optional<Process> process;
    std::string hostname;
    std::string domainname;
    Hooks hooks;
    StringMap annotations;
    Linux linux_;  // trailing underscore: gcc defines the macro `linux`
};

}  // namespace pinfold
