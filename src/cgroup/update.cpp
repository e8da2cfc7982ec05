// Changing the limits of a group that is in use.
#include "cgroup/update.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/controllers.hpp"
#include "cgroup/device_program.hpp"
#include "cgroup/layout.hpp"
#include "cgroup/scope.hpp"
#include "cgroup/scope_properties.hpp"
#include "cgroup/write_limit.hpp"

namespace pinfold {

namespace {

constexpr int64_t kUnlimited = -1;

// Puts the old values back, the latest first, unless commit() was called.
class Undo {
public:
    explicit Undo(int group) : group_(group) {}
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo() {
        while (!old_.empty()) {
            const auto restored = write_file_at(group_, old_.back().file, old_.back().value);
            if (!restored) log_warning(concat("put an old limit back: ", restored.error().message));
            old_.pop_back();
        }
    }

    // Before the write.
    void remember(const CgroupWrite& write) {
        remember(write.file, write.value);
        if (!write.twin_file.empty()) remember(write.twin_file, write.twin_value);
    }
    void commit() { old_.clear(); }

private:
    // In a file of several lines, the one with the same key is what the write changes.
    void remember(const std::string& file, const std::string& value) {
        const Result<std::string> old = read_long_control(group_, file);
        if (!old) return;  // then it cannot be written to either
        const std::string key = value.substr(0, value.find(' ') + 1);
        const std::vector<std::string_view> lines = split(*old, '\n');
        const auto same = std::ranges::find_if(lines, [&](std::string_view line) { return line.starts_with(key); });
        const bool has_line = !key.empty() && same != lines.end();
        old_.push_back({file, has_line ? std::string(*same) : without_line(file, key, *old), {}});
    }

    // What takes a line back that is not there yet: devices get theirs with the first limit.
    static std::string without_line(const std::string& file, const std::string& key, const std::string& text) {
        if (file == "io.max") return key + "rbps=max wbps=max riops=max wiops=max";
        if (file == "io.weight" || file == "io.bfq.weight") return key + "default";
        return text;
    }

    int group_;
    std::vector<CgroupWrite> old_;
};

// "max" and no such file both mean that nothing is limited.
int64_t current(int group, const std::string& file) {
    const Result<std::string> text = read_control(group, file);
    return text ? parse_number<int64_t>(split(*text, '\n')[0]).value_or(kUnlimited) : kUnlimited;
}

// The specification's swap counts memory and swap together. Where only one of the two changes, the sum stays.
Result<void> complete_memory(int group, MemoryLimits& memory) {
    const int64_t limit = memory.limit.value_or(0);
    const int64_t swap = memory.swap.value_or(0);
    const int64_t old_limit = current(group, "memory.max");
    const int64_t old_swap = current(group, "memory.swap.max");
    if (limit == 0 && swap > 0 && old_limit != kUnlimited) memory.limit = old_limit;
    if (limit == 0 || swap != 0) return {};
    if (limit < 0) memory.swap = kUnlimited;
    if (limit < 0 || old_limit == kUnlimited || old_swap == kUnlimited) return {};
    if (limit > old_limit + old_swap) {
        return plain_error(concat("linux.resources.memory.limit: ", limit, " is more than the ", old_limit + old_swap,
                                  " that memory and swap together may have"))
            .with_hint("change linux.resources.memory.swap (--memory-swap) at the same time");
    }
    memory.swap = old_limit + old_swap;
    return {};
}

// The kernel would kill processes until the rest fits; memory.checkBeforeUpdate forbids that.
Result<void> check_usage(int group, const MemoryLimits& memory) {
    if (!memory.check_before_update.value_or(false)) return {};
    const int64_t used = std::max<int64_t>(0, current(group, "memory.current"));
    const int64_t swapped = std::max<int64_t>(0, current(group, "memory.swap.current"));
    const auto refuse = [](std::string_view name, int64_t limit, int64_t usage) {
        return plain_error(concat("linux.resources.memory.", name, ": ", limit, " is less than the ", usage,
                                  " in use, and linux.resources.memory.checkBeforeUpdate is true"));
    };
    const int64_t limit = memory.limit.value_or(0);
    const int64_t swap = memory.swap.value_or(0);
    if (limit > 0 && limit < used) return refuse("limit", limit, used);
    if (swap > 0 && swap < used + swapped) return refuse("swap", swap, used + swapped);
    return {};
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
    TRY(complete_memory(group, resources.memory));
    TRY(check_usage(group, resources.memory));
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
    plan.hybrid = find_cgroup_host().hybrid;
    plan.writes = writes;
    plan.controllers = controllers_of(writes);
    // A scope has all that systemd could give it already.
    if (plan.controllers.empty() || !place.scope.empty()) return {};
    const UniqueFd top = TRY(open_at(AT_FDCWD, place.mount, O_PATH | O_DIRECTORY));
    TRY(check_controllers(top.get(), plan));
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

}  // namespace

Result<void> update_cgroup(const CgroupPlace& place, Resources resources) {
    const UniqueFd group = TRY(open_group(place));
    const std::vector<DeviceRule> devices = std::move(resources.devices);
    std::vector<CgroupWrite> writes = TRY(plan_writes(group.get(), std::move(resources)));
    TRY(provide_controllers(place, writes));
    sort_writes(group.get(), writes);
    Undo undo(group.get());
    const std::string name = concat("cgroup ", place.mount, place.path);
    for (const CgroupWrite& write : writes) {
        undo.remember(write);
        TRY_IN(name, write_limit(group.get(), write));
    }
    TRY_IN(name, update_devices(group.get(), devices));
    if (!place.scope.empty()) TRY(tell_systemd(place, group.get(), writes));
    undo.commit();
    return {};
}

}  // namespace pinfold
