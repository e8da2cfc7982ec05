// Limits as properties of a systemd unit.
#include "cgroup/scope_properties.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kSecond = 1'000'000;         // in microseconds
constexpr uint64_t kQuotaStep = kSecond / 100;  // systemd keeps a quota in whole per cents

// Files whose one value is the property's.
constexpr std::pair<std::string_view, std::string_view> kSameValue[] = {
    {"memory.max", "MemoryMax"}, {"memory.high", "MemoryHigh"},        {"memory.low", "MemoryLow"},
    {"memory.min", "MemoryMin"}, {"memory.swap.max", "MemorySwapMax"}, {"cpu.weight", "CPUWeight"},
    {"pids.max", "TasksMax"},    {"cpuset.cpus", "AllowedCPUs"},       {"cpuset.mems", "AllowedMemoryNodes"},
};

std::string in_words_of_systemd(const std::string& value) { return value == "max" ? "infinity" : value; }

// "QUOTA PERIOD" as time per second, rounded up: the file itself has the exact quota.
void add_cpu_quota(std::string_view value, std::vector<std::string>& properties) {
    const std::vector<std::string_view> words = split(value, ' ');
    const auto period = parse_number<uint64_t>(words.back());
    if (words.size() != 2 || !period || *period == 0) return;
    const auto quota = parse_number<uint64_t>(words[0]);
    const uint64_t per_second = quota ? *quota * kSecond / *period : 0;
    const uint64_t rounded = (per_second + kQuotaStep - 1) / kQuotaStep * kQuotaStep;
    properties.push_back(concat("CPUQuotaPerSecUSec=", quota ? std::to_string(rounded) : "infinity"));
    properties.push_back(concat("CPUQuotaPeriodUSec=", *period));
}

// "default 100"; weights for single devices are not systemd's to know.
void add_io_weight(std::string_view value, std::vector<std::string>& properties) {
    constexpr std::string_view kDefault = "default ";
    if (value.starts_with(kDefault)) properties.push_back(concat("IOWeight=", value.substr(kDefault.size())));
}

}  // namespace

std::vector<std::string> limit_properties(const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> properties;
    for (const CgroupWrite& write : writes) {
        if (write.file == "cpu.max") add_cpu_quota(write.value, properties);
        if (write.file == "io.weight") add_io_weight(write.value, properties);
        for (const auto& [file, property] : kSameValue) {
            if (write.file == file) properties.push_back(concat(property, "=", in_words_of_systemd(write.value)));
        }
    }
    return properties;
}

std::vector<std::string> scope_properties(const ScopeName& name, const std::string& id,
                                          const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> properties = {
        concat("Slice=", name.slice),
        concat("Description=pinfold container ", id),
        "Delegate=yes",                    // the groups below are the payload's, and every controller is passed on
        "DefaultDependencies=no",          // it may be started and stopped at any time
        "CollectMode=inactive-or-failed",  // however it ends, nothing of it stays
        "TimeoutStopUSec=5000000",         // for one who stops the unit: a first process may ignore SIGTERM
        "CPUAccounting=yes",
        "MemoryAccounting=yes",
        "IOAccounting=yes",
        "TasksAccounting=yes",
    };
    // systemd has a limit of its own for units that have none.
    const bool limits_tasks = std::ranges::any_of(writes, [](const auto& write) { return write.file == "pids.max"; });
    if (!limits_tasks) properties.emplace_back("TasksMax=infinity");
    const std::vector<std::string> limits = limit_properties(writes);
    properties.insert(properties.end(), limits.begin(), limits.end());
    return properties;
}

}  // namespace pinfold
