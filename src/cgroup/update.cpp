// Changing the limits of a group that is in use.
#include "cgroup/update.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/controllers.hpp"
#include "cgroup/device_program.hpp"
#include "cgroup/layout.hpp"
#include "cgroup/legacy_limits.hpp"
#include "cgroup/legacy_update.hpp"
#include "cgroup/memory_update.hpp"
#include "cgroup/scope.hpp"
#include "cgroup/scope_properties.hpp"
#include "cgroup/undo.hpp"
#include "cgroup/write_limit.hpp"

namespace pinfold {

namespace {

// "max" and no such file both mean that nothing is limited.
int64_t current(int group, const std::string& file) {
    const Result<std::string> text = read_control(group, file);
    return text ? parse_number<int64_t>(split(*text, '\n')[0]).value_or(kUnlimited) : kUnlimited;
}

MemoryNow memory_now(int group) {
    const int64_t limit = current(group, "memory.max");
    const int64_t swap = current(group, "memory.swap.max");
    const int64_t used = std::max<int64_t>(0, current(group, "memory.current"));
    const int64_t swapped = std::max<int64_t>(0, current(group, "memory.swap.current"));
    const bool limited = limit != kUnlimited && swap != kUnlimited;
    return {limit, limited ? limit + swap : kUnlimited, used, used + swapped};
}

// The kernel has both in one file, "QUOTA PERIOD".
void complete_cpu(int group, CpuLimits& cpu) {
    const bool has_quota = cpu.quota.value_or(0) != 0;
    const bool has_period = cpu.period.value_or(0) != 0;
    const Result<std::string> text = read_control(group, "cpu.max");
    if (has_quota == has_period || !text) return;
    const std::vector<std::string_view> words = split(split(*text, '\n')[0], ' ');
    if (words.size() != 2) return;
    if (!has_quota) cpu.quota = parse_number<int64_t>(words[0]).value_or(kUnlimited);
    else cpu.period = parse_number<uint64_t>(words[1]);
}

// Zeros that take something back. An idle group has no weight, so it stops to be one before it gets one.
void add_zeros(const CpuLimits& cpu, std::vector<CgroupWrite>& writes) {
    if (cpu.burst == 0U) writes.push_back({"cpu.max.burst", "0", "linux.resources.cpu.burst"});
    if (cpu.idle == 0) writes.insert(writes.begin(), {"cpu.idle", "0", "linux.resources.cpu.idle"});
}

Result<std::vector<CgroupWrite>> plan_writes(int group, Resources resources) {
    TRY(complete_memory(memory_now(group), resources.memory));
    complete_cpu(group, resources.cpu);
    if (resources.pids_limit == 0) resources.pids_limit.reset();
    std::vector<CgroupWrite> writes = TRY(cgroup_writes(resources));
    add_zeros(resources.cpu, writes);
    // Without the file, the group is as the kernel made it already.
    std::erase_if(writes, [&](const CgroupWrite& write) {
        return is_kernel_default(write) && ::faccessat(group, write.file.c_str(), F_OK, 0) != 0;
    });
    return writes;
}

std::optional<uint64_t> amount_of(std::string_view value) {
    const std::string_view word = value.substr(0, value.find_first_of(" \n"));
    return word == "max" ? UINT64_MAX : parse_number<uint64_t>(word);
}

bool lowers_a_limit(int group, const CgroupWrite& write) {
    if (write.file.find(".max") == std::string::npos) return false;
    const Result<std::string> old = read_control(group, write.file);
    const auto before = old ? amount_of(*old) : std::nullopt;
    const auto after = amount_of(write.value);
    return before && after && *after < *before;
}

// Gives before it takes: a process must not be killed for memory that may soon be swapped out. What is lowered comes
// in the reverse order, since the kernel keeps cpu.max.burst within cpu.max at every moment.
void sort_writes(int group, std::vector<CgroupWrite>& writes) {
    const auto lowering = std::stable_partition(
        writes.begin(), writes.end(), [&](const CgroupWrite& write) { return !lowers_a_limit(group, write); });
    std::reverse(lowering, writes.end());
}

Result<void> provide_controllers(const CgroupPlace& place, const std::vector<CgroupWrite>& writes) {
    CgroupPlan plan;
    plan.place = place;
    plan.hybrid = TRY(find_cgroup_host()).hybrid;
    plan.writes = writes;
    plan.controllers = controllers_of(writes);
    // A scope has all that systemd could give it already.
    if (plan.controllers.empty() || !place.scope.empty()) return {};
    const UniqueFd top = TRY(open_at(AT_FDCWD, place.mount, O_PATH | O_DIRECTORY));
    const Result<void> checked = check_controllers(top.get(), plan);
    if (!checked && plan.hybrid && place.legacy.empty()) {
        return Error(checked.error())
            .with_hint(
                "what cgroup v1 has here is of use only to a container that was created with a limit, or with "
                "linux.cgroupsPath");
    }
    TRY(checked);
    return make_ancestors(top.get(), plan);
}

Result<void> update_devices(int group, const std::vector<DeviceRule>& rules) {
    if (rules.empty()) return {};
    return replace_device_program(group, device_program(rules));
}

// What systemd writes on that occasion is what it knows, and rounded: the exact values are written once more.
Result<void> tell_systemd(const CgroupPlace& place, int group, const std::vector<CgroupWrite>& writes) {
    TRY(change_scope(place, limit_properties(writes)));
    for (const CgroupWrite& write : writes) TRY(write_limit(group, write));
    return {};
}

Result<std::vector<CgroupWrite>> update_unified(const CgroupPlace& place, int group, Resources resources, Undo& undo) {
    if (place.mount.empty()) return std::vector<CgroupWrite>();
    std::vector<CgroupWrite> writes = TRY(plan_writes(group, std::move(resources)));
    TRY(provide_controllers(place, writes));
    sort_writes(group, writes);
    const std::string name = concat("cgroup ", place.mount, place.path);
    for (const CgroupWrite& write : writes) TRY_IN(name, undo.set(group, write));
    if (!place.scope.empty()) TRY(tell_systemd(place, group, writes));
    return writes;
}

// As it was when the container was created: its groups are where they are.
CgroupHost host_of(const CgroupPlace& place) {
    CgroupHost host;
    host.mount = place.mount;
    host.legacy = place.legacy;
    if (place.mount.empty() || place.legacy.empty()) return host;
    const Result<std::string> list = read_control(AT_FDCWD, concat(place.mount, "/cgroup.controllers"));
    if (list) host.controllers = *list;
    return host;
}

}  // namespace

Result<void> update_cgroup(const CgroupPlace& place, const Resources& resources, const KeepLimits& keep) {
    const DividedResources divided = divide_resources(resources, host_of(place));
    const UniqueFd group = TRY(open_group(place));
    const LegacyGroups legacy = TRY(LegacyGroups::open(place));
    Undo undo;
    const GroupLimits written{TRY(update_unified(place, group.get(), divided.unified, undo)),
                              TRY(update_legacy_limits(place, legacy, divided.legacy, undo))};
    TRY_IN(concat("cgroup ", place.mount, place.path), update_devices(group.get(), divided.unified.devices));
    TRY(update_legacy_devices(place, legacy, divided.legacy.devices));
    if (keep) TRY(keep(written));
    undo.commit();
    return {};
}

}  // namespace pinfold
