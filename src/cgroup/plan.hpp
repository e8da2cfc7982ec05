// What a container asks of cgroups, decided before anything is touched. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cgroup/control_files.hpp"
#include "cgroup/path.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// linux.resources as writes to the control files of a cgroup v2 group. Pure: used for new groups and for updates.

struct CgroupWrite {
    std::string file;      // "memory.max"
    std::string value;     // "67108864"
    std::string property;  // "linux.resources.memory.limit": what an error names

    // Another file for the same property. Both are set where the kernel has both, and one of them is enough.
    std::string alternate_file{};
    std::string alternate_value{};
};

// The limits of a container: what its groups were told, in the order in which they were.
struct GroupLimits {
    std::vector<CgroupWrite> v2;
    std::vector<CgroupWrite> v1;
};

// Collects writes; the properties are named below "linux.resources.".
class WriteList {
public:
    void add(CgroupWrite write) { writes_.push_back(std::move(write)); }
    void add(std::string_view property, CgroupWrite write);
    void add(std::string_view property, std::string file, std::string value);
    std::vector<CgroupWrite> take() { return std::move(writes_); }

private:
    std::vector<CgroupWrite> writes_;
};

// The writes come in the order in which they have to be made. Zeros mean "not set", as engines send them. An error
// where the numbers contradict each other or where cgroup v2 has nothing that could enforce the property.
// memory.useHierarchy asks for nothing: cgroup v2 always counts groups below a group. memory.checkBeforeUpdate is
// for updates alone.
Result<std::vector<CgroupWrite>> v2_writes(const Resources& resources);

// An error where memory and swap, counted together in the specification, contradict each other.
Result<void> check_swap(const MemoryLimits& memory);

// The write leaves a new group as the kernel made it, so it asks for no controller.
bool is_v2_default(const CgroupWrite& write);

// "memory" for "memory.max"; empty for "cgroup.*", which every group has.
std::string_view controller_of(std::string_view file);

// The controllers that the writes need, each once.
std::vector<std::string> controllers_of(const std::vector<CgroupWrite>& writes);

// "linux.resources.memory.limit, linux.resources.pids.limit"
std::string properties_of(const std::vector<CgroupWrite>& writes);

inline constexpr int64_t kNoMaximum = -1;  // as the specification writes it

// The memory that a group has, in bytes. The specification counts swap together with memory.
struct MemoryNow {
    int64_t limit = kNoMaximum;
    int64_t limit_with_swap = kNoMaximum;
    int64_t used = 0;
    int64_t used_with_swap = 0;
};

// Where only one of memory and swap changes, the sum stays. Limits that contradict what is there are refused, and with
// memory.checkBeforeUpdate also those for which the kernel would kill.
Result<void> complete_memory(const MemoryNow& now, MemoryLimits& memory);

enum class CgroupManager : uint8_t { cgroupfs, systemd, disabled };

struct CgroupPlan {
    CgroupPath place;                      // none: no group is made, the container stays in its caller's
    bool hybrid = false;                   // for the hint where a controller is missing
    std::vector<std::string> controllers;  // to enable in every group above
    std::vector<CgroupWrite> writes;
    std::vector<std::string> scope_properties;  // what place.scope is started with
    std::vector<CgroupWrite> v1_writes;         // to cgroup v1
    std::vector<CgroupWrite> device_writes;     // to cgroup v1, where there is no v2 for a device program
    std::vector<DeviceRule> device_rules;       // oldest first, without the standard devices
    bool filter_devices = false;
    std::optional<uid_t> owner;    // who may make groups below it; nobody: root
    bool filter_may_fail = false;  // the caller may lack the right to bpf(2), but then its payload makes no nodes
};

// The parent of every group whose place the configuration does not say.
inline constexpr std::string_view kCgroupHome = "/pinfold";

Result<CgroupPlan> plan_cgroup(const Linux& config, const std::string& id, const CgroupHost& host,
                               CgroupManager manager, bool new_user_namespace_or_rootless);

}  // namespace pinfold
