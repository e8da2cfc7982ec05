// What a group has used so far, from its control files to JSON.
// The names and units are v1's, as the callers' types have them: nanoseconds, and swap that includes memory.
#include "cgroup/stats.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/legacy_stats.hpp"
#include "cgroup/stats_json.hpp"

namespace pinfold {

namespace {

// "some avg10=0.00 avg60=0.00 avg300=0.00 total=0", and a line for "full".
std::string pressure(int group, const std::string& file) {
    JsonObject kinds;
    const std::string text = text_of(group, file);
    for (const std::string_view line : split(text, '\n')) {
        const std::vector<std::string_view> words = split(line, ' ');
        if (words.size() < 2) continue;
        JsonObject figures;
        for (size_t i = 1; i < words.size(); ++i) {
            const size_t equals = words[i].find('=');
            if (equals != line.npos) figures.add(words[i].substr(0, equals), words[i].substr(equals + 1));
        }
        kinds.add(words[0], figures.text());
    }
    return text.empty() ? std::string() : kinds.text();
}

std::string cpu(int group) {
    constexpr uint64_t kNanoseconds = 1000;  // in one of the kernel's microseconds
    const std::string text = text_of(group, "cpu.stat");
    const std::vector<Entry> stat = entries_of(text);
    const std::string usage = JsonObject()
                                  .add("total", value_of(stat, "usage_usec") * kNanoseconds)
                                  .add("percpu", "[]")
                                  .add("kernel", value_of(stat, "system_usec") * kNanoseconds)
                                  .add("user", value_of(stat, "user_usec") * kNanoseconds)
                                  .text();
    const std::string throttling = JsonObject()
                                       .add("periods", value_of(stat, "nr_periods"))
                                       .add("throttledPeriods", value_of(stat, "nr_throttled"))
                                       .add("throttledTime", value_of(stat, "throttled_usec") * kNanoseconds)
                                       .text();
    return JsonObject()
        .add("usage", usage)
        .add("throttling", throttling)
        .add_if_any("psi", pressure(group, "cpu.pressure"))
        .text();
}

uint64_t sum_of_limits(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

std::string memory(int group) {
    const std::string stat_text = text_of(group, "memory.stat");
    const std::string events_text = text_of(group, "memory.events");
    const std::vector<Entry> stat = entries_of(stat_text);
    const std::vector<Entry> events = entries_of(events_text);
    const MemoryEntry usage{number_in(group, "memory.max"), number_in(group, "memory.current"),
                            number_in(group, "memory.peak"), value_of(events, "max")};
    MemoryEntry swap;
    swap.limit = sum_of_limits(number_in(group, "memory.swap.max"), usage.limit);
    swap.usage = number_in(group, "memory.swap.current") + usage.usage;
    return JsonObject()
        .add("cache", value_of(stat, "file"))
        .add("usage", to_json(usage))
        .add("swap", to_json(swap))
        .add("kernel", to_json(MemoryEntry{}))
        .add("kernelTCP", to_json(MemoryEntry{}))
        .add("raw", to_json(stat))
        .add_if_any("psi", pressure(group, "memory.pressure"))
        .add("event_count", to_json(events))
        .text();
}

// No limit is 0 to the callers.
std::string pids(int group) {
    const uint64_t limit = number_in(group, "pids.max");
    return JsonObject()
        .add("current", number_in(group, "pids.current"))
        .add("limit", limit == UINT64_MAX ? 0 : limit)
        .text();
}

// Of lines as "8:0 rbytes=1 wbytes=2 rios=3 wios=4 ...", what two of the keys say.
std::string io_entries(std::string_view stat, std::string_view read_key, std::string_view write_key) {
    std::vector<std::string> entries;
    for (const std::string_view line : split(stat, '\n')) {
        const std::vector<std::string_view> words = split(line, ' ');
        const std::vector<std::string_view> device = split(words[0], ':');
        for (const std::string_view word : words) {
            const std::string_view key = word.substr(0, word.find('='));
            if (device.size() != 2 || (key != read_key && key != write_key)) continue;
            entries.push_back(JsonObject()
                                  .add("major", device[0])
                                  .add("minor", device[1])
                                  .add("op", key == read_key ? "\"Read\"" : "\"Write\"")
                                  .add("value", word.substr(key.size() + 1))
                                  .text());
        }
    }
    return concat('[', join(entries, ","), ']');
}

std::string block_io(int group) {
    const std::string stat = text_of(group, "io.stat");
    return JsonObject()
        .add("ioServiceBytesRecursive", io_entries(stat, "rbytes", "wbytes"))
        .add("ioServicedRecursive", io_entries(stat, "rios", "wios"))
        .add_if_any("psi", pressure(group, "io.pressure"))
        .text();
}

// The sizes that this machine has are in the names: "hugetlb.2MB.current".
std::string huge_pages(int group) {
    constexpr std::string_view kPrefix = "hugetlb.";
    constexpr std::string_view kSuffix = ".current";
    JsonObject sizes;
    const auto visited = visit_files(group, [&](std::string_view name) {
        if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.ends_with(".rsvd.current")) return true;
        const std::string_view size = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
        const std::string events = text_of(group, concat(kPrefix, size, ".events"));
        sizes.add(size, JsonObject()
                            .add("usage", number_in(group, std::string(name)))
                            .add("failcnt", value_of(entries_of(events), "max"))
                            .text());
        return true;
    });
    return visited ? sizes.text() : "{}";
}

}  // namespace

std::string stats_to_json(int group, const LegacyGroups& legacy) {
    const auto is_in = [&](const char* controller) { return legacy.of(controller) >= 0; };
    return JsonObject()
        .add("cpu", is_in("cpuacct") ? legacy_cpu(legacy) : cpu(group))
        .add("cpuset", "{}")
        .add("memory", is_in("memory") ? legacy_memory(legacy) : memory(group))
        .add("pids", pids(is_in("pids") ? legacy.of("pids") : group))
        .add("blkio", is_in("blkio") ? legacy_block_io(legacy) : block_io(group))
        .add("hugetlb", is_in("hugetlb") ? legacy_huge_pages(legacy) : huge_pages(group))
        .add("intel_rdt", "{}")
        .add("network_interfaces", "null")
        .text();
}

}  // namespace pinfold
