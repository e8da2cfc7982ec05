// Changing the limits of groups in cgroup v1 that are in use.
#include "cgroup/legacy_update.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/freeze.hpp"
#include "cgroup/legacy_devices.hpp"
#include "cgroup/legacy_limits.hpp"
#include "cgroup/memory_update.hpp"
#include "cgroup/write_limit.hpp"

namespace pinfold {

namespace {

// No such file means that nothing is limited.
int64_t current(int group, const std::string& file) {
    const Result<std::string> text = read_control(group, file);
    if (!text || is_legacy_unlimited(*text)) return kUnlimited;
    return parse_number<int64_t>(split(*text, '\n')[0]).value_or(kUnlimited);
}

MemoryNow memory_now(int group) {
    return {current(group, "memory.limit_in_bytes"), current(group, "memory.memsw.limit_in_bytes"),
            std::max<int64_t>(0, current(group, "memory.usage_in_bytes")),
            std::max<int64_t>(0, current(group, "memory.memsw.usage_in_bytes"))};
}

// Zeros that take something back.
void add_zeros(const CpuLimits& cpu, std::vector<CgroupWrite>& writes) {
    if (cpu.burst == 0U) writes.push_back({"cpu.cfs_burst_us", "0", "linux.resources.cpu.burst"});
    if (cpu.idle == 0) writes.push_back({"cpu.idle", "0", "linux.resources.cpu.idle"});
}

// Thaws what it has frozen.
class Standstill {
public:
    explicit Standstill(const CgroupPlace& place) : place_(place) {}
    Standstill(const Standstill&) = delete;
    Standstill& operator=(const Standstill&) = delete;
    ~Standstill() {
        if (!ours_) return;
        if (const auto thawed = thaw_group(place_); !thawed) log_warning(thawed.error().message);
    }

    Result<void> begin() {
        if (is_frozen(place_)) return {};
        TRY(freeze_group(place_));
        ours_ = true;
        return {};
    }

private:
    const CgroupPlace& place_;
    bool ours_ = false;
};

}  // namespace

Result<std::vector<CgroupWrite>> update_legacy_limits(const CgroupPlace& place, const LegacyGroups& groups,
                                                      Resources resources, Undo& undo) {
    TRY(complete_memory(memory_now(groups.of("memory")), resources.memory));
    if (resources.pids_limit == 0) resources.pids_limit.reset();
    std::vector<CgroupWrite> writes = TRY(legacy_writes(resources));
    add_zeros(resources.cpu, writes);
    // Without the file, the group is as the kernel made it already.
    std::erase_if(writes, [&](const CgroupWrite& write) {
        return is_legacy_default(write) && ::faccessat(groups.of(write.file), write.file.c_str(), F_OK, 0) != 0;
    });
    TRY(check_legacy_controllers(writes, place.legacy));
    TRY_IN(concat("cgroup v1, group ", place.path), write_legacy_limits(groups, writes, undo));
    return writes;
}

Result<void> update_legacy_devices(const CgroupPlace& place, const LegacyGroups& groups,
                                   const std::vector<DeviceRule>& rules) {
    if (rules.empty()) return {};
    const std::vector<CgroupWrite> writes = TRY(legacy_device_writes(rules));
    Standstill standstill(place);
    TRY(standstill.begin());
    for (const CgroupWrite& write : writes) {
        TRY_IN(concat("cgroup v1, group ", place.path), write_limit(groups.of(write.file), write));
    }
    return {};
}

}  // namespace pinfold
