// What a container's groups in cgroup v1 have used, from their control files to JSON.
#include "cgroup/legacy_stats.hpp"

#include <unistd.h>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/stats_json.hpp"

namespace pinfold {

namespace {

// "123 456 \n" as "[123,456]".
std::string number_list(std::string_view text) {
    std::vector<std::string> numbers;
    for (const std::string_view word : split(text.substr(0, text.find('\n')), ' ')) {
        if (!word.empty()) numbers.emplace_back(word);
    }
    return concat('[', join(numbers, ","), ']');
}

// "memory.kmem." for the kernel's own.
std::string memory_entry(int group, const std::string& prefix) {
    return to_json(MemoryEntry{number_in(group, prefix + "limit_in_bytes"), number_in(group, prefix + "usage_in_bytes"),
                               number_in(group, prefix + "max_usage_in_bytes"), number_in(group, prefix + "failcnt")});
}

// Of lines as "8:0 Read 4096"; the sums over all devices have no device.
std::string io_entries(std::string_view text) {
    std::vector<std::string> entries;
    for (const std::string_view line : split(text, '\n')) {
        const std::vector<std::string_view> words = split(line, ' ');
        const std::vector<std::string_view> device = split(words[0], ':');
        if (words.size() != 3 || device.size() != 2) continue;
        entries.push_back(JsonObject()
                              .add("major", device[0])
                              .add("minor", device[1])
                              .add("op", json_quoted(words[1]))
                              .add("value", words[2])
                              .text());
    }
    return concat('[', join(entries, ","), ']');
}

// The scheduler's figures, if a device has one that keeps them; else those of the throttle, which sees all devices.
std::string io_figures(int group, const std::string& name) {
    const std::string scheduler = io_entries(text_of(group, concat("blkio.bfq.", name)));
    return scheduler == "[]" ? io_entries(text_of(group, concat("blkio.throttle.", name))) : scheduler;
}

}  // namespace

std::string legacy_cpu(const LegacyGroups& groups) {
    const int account = groups.of("cpuacct");
    const std::string spent_text = text_of(account, "cpuacct.stat");
    const std::string stat_text = text_of(groups.of("cpu"), "cpu.stat");
    const std::vector<Entry> spent = entries_of(spent_text);
    const std::vector<Entry> stat = entries_of(stat_text);
    const uint64_t tick = 1'000'000'000 / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
    const std::string usage = JsonObject()
                                  .add("total", number_in(account, "cpuacct.usage"))
                                  .add("percpu", number_list(text_of(account, "cpuacct.usage_percpu")))
                                  .add("kernel", value_of(spent, "system") * tick)
                                  .add("user", value_of(spent, "user") * tick)
                                  .text();
    const std::string throttling = JsonObject()
                                       .add("periods", value_of(stat, "nr_periods"))
                                       .add("throttledPeriods", value_of(stat, "nr_throttled"))
                                       .add("throttledTime", value_of(stat, "throttled_time"))
                                       .text();
    return JsonObject().add("usage", usage).add("throttling", throttling).text();
}

std::string legacy_memory(const LegacyGroups& groups) {
    const int group = groups.of("memory");
    const std::string stat_text = text_of(group, "memory.stat");
    const std::string events_text = text_of(group, "memory.oom_control");
    const std::vector<Entry> stat = entries_of(stat_text);
    return JsonObject()
        .add("cache", value_of(stat, "cache"))
        .add("usage", memory_entry(group, "memory."))
        .add("swap", memory_entry(group, "memory.memsw."))
        .add("kernel", memory_entry(group, "memory.kmem."))
        .add("kernelTCP", memory_entry(group, "memory.kmem.tcp."))
        .add("raw", to_json(stat))
        .add("event_count", to_json(entries_of(events_text)))
        .text();
}

std::string legacy_block_io(const LegacyGroups& groups) {
    const int group = groups.of("blkio");
    return JsonObject()
        .add("ioServiceBytesRecursive", io_figures(group, "io_service_bytes_recursive"))
        .add("ioServicedRecursive", io_figures(group, "io_serviced_recursive"))
        .text();
}

// The sizes that this machine has are in the names: "hugetlb.2MB.usage_in_bytes".
std::string legacy_huge_pages(const LegacyGroups& groups) {
    constexpr std::string_view kPrefix = "hugetlb.";
    constexpr std::string_view kSuffix = ".usage_in_bytes";
    const int group = groups.of("hugetlb");
    JsonObject sizes;
    const auto visited = visit_files(group, [&](std::string_view name) {
        if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.ends_with(".rsvd.usage_in_bytes"))
            return true;
        const std::string_view size = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
        const std::string of_size = concat(kPrefix, size);
        sizes.add(size, JsonObject()
                            .add("usage", number_in(group, of_size + ".usage_in_bytes"))
                            .add("max", number_in(group, of_size + ".max_usage_in_bytes"))
                            .add("failcnt", number_in(group, of_size + ".failcnt"))
                            .text());
        return true;
    });
    return visited ? sizes.text() : "{}";
}

}  // namespace pinfold
