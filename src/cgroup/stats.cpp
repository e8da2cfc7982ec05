// What a group has used so far, from its control files to JSON.
// The names and units are v1's, as the callers' types have them: nanoseconds, and swap that includes memory.
#include "cgroup/stats.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "json/json.hpp"

namespace pinfold {

namespace {

// Empty, or 0, where the controller or the kernel has no such file.
std::string text_of(int group, const std::string& file) {
    Result<std::string> text = read_long_control(group, file);
    return text ? std::move(text).value() : std::string();
}

uint64_t number_in(int group, const std::string& file) {
    const std::string text = text_of(group, file);
    const std::string_view word = std::string_view(text).substr(0, text.find('\n'));
    return word == "max" ? UINT64_MAX : parse_number<uint64_t>(word).value_or(0);
}

// A file with lines of "KEY NUMBER".
class Figures {
public:
    Figures(int group, const std::string& file) : text_(text_of(group, file)) {}

    uint64_t operator[](std::string_view key) const { return event_count(text_, key); }
    std::string to_json() const {
        JsonObject object;
        for (const std::string_view line : split(text_, '\n')) {
            const size_t blank = line.find(' ');
            if (blank == line.npos) continue;
            const auto number = parse_number<uint64_t>(line.substr(blank + 1));
            if (number) object.add(line.substr(0, blank), *number);
        }
        return object.text();
    }

private:
    std::string text_;
};

std::string memory_entry(uint64_t limit, uint64_t usage, uint64_t most, uint64_t failures) {
    return JsonObject().add("limit", limit).add("usage", usage).add("max", most).add("failcnt", failures).text();
}

std::string io_entry(std::string_view device, std::string_view operation, std::string_view value) {
    const size_t colon = device.find(':');
    return JsonObject()
        .add("major", device.substr(0, colon))
        .add("minor", device.substr(colon + 1))
        .add("op", json_quoted(operation))
        .add("value", value)
        .text();
}

std::string in_list(const std::vector<std::string>& items) { return concat('[', join(items, ","), ']'); }

// The sizes of pages that this machine has are in the names: "hugetlb.2MB.current" with the suffix ".current".
std::string huge_pages(int group, std::string_view suffix,
                       const std::function<std::string(const std::string& prefix)>& figures) {
    constexpr std::string_view kPrefix = "hugetlb.";
    JsonObject sizes;
    const auto visited = visit_files(group, [&](std::string_view name) {
        if (!name.starts_with(kPrefix) || !name.ends_with(suffix) || name.ends_with(concat(".rsvd", suffix))) {
            return true;
        }
        const std::string_view of_size = name.substr(0, name.size() - suffix.size());
        sizes.add(of_size.substr(kPrefix.size()), figures(std::string(of_size)));
        return true;
    });
    return visited ? sizes.text() : "{}";
}

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

JsonObject cpu_object(const std::string& usage, const Figures& stat, uint64_t throttled_time) {
    const std::string throttling = JsonObject()
                                       .add("periods", stat["nr_periods"])
                                       .add("throttledPeriods", stat["nr_throttled"])
                                       .add("throttledTime", throttled_time)
                                       .text();
    return JsonObject().add("usage", usage).add("throttling", throttling);
}

std::string v2_cpu(int group) {
    constexpr uint64_t kNanoseconds = 1000;  // in one of the kernel's microseconds
    const Figures stat(group, "cpu.stat");
    const std::string usage = JsonObject()
                                  .add("total", stat["usage_usec"] * kNanoseconds)
                                  .add("percpu", "[]")
                                  .add("kernel", stat["system_usec"] * kNanoseconds)
                                  .add("user", stat["user_usec"] * kNanoseconds)
                                  .text();
    return cpu_object(usage, stat, stat["throttled_usec"] * kNanoseconds)
        .add_if_any("psi", pressure(group, "cpu.pressure"))
        .text();
}

// "123 456 \n" as "[123,456]".
std::string number_list(std::string_view text) {
    std::vector<std::string> numbers;
    for (const std::string_view word : split(text.substr(0, text.find('\n')), ' ')) {
        if (!word.empty()) numbers.emplace_back(word);
    }
    return in_list(numbers);
}

std::string v1_cpu(const V1GroupFds& groups) {
    const int account = groups.of("cpuacct");
    const Figures spent(account, "cpuacct.stat");
    const Figures stat(groups.of("cpu"), "cpu.stat");
    const uint64_t tick = 1'000'000'000 / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
    const std::string usage = JsonObject()
                                  .add("total", number_in(account, "cpuacct.usage"))
                                  .add("percpu", number_list(text_of(account, "cpuacct.usage_percpu")))
                                  .add("kernel", spent["system"] * tick)
                                  .add("user", spent["user"] * tick)
                                  .text();
    return cpu_object(usage, stat, stat["throttled_time"]).text();
}

uint64_t sum_of_limits(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

std::string v2_memory(int group) {
    const Figures stat(group, "memory.stat");
    const Figures events(group, "memory.events");
    const uint64_t limit = number_in(group, "memory.max");
    const uint64_t used = number_in(group, "memory.current");
    const uint64_t swap_limit = sum_of_limits(number_in(group, "memory.swap.max"), limit);
    const std::string none = memory_entry(0, 0, 0, 0);
    return JsonObject()
        .add("cache", stat["file"])
        .add("usage", memory_entry(limit, used, number_in(group, "memory.peak"), events["max"]))
        .add("swap", memory_entry(swap_limit, number_in(group, "memory.swap.current") + used, 0, 0))
        .add("kernel", none)
        .add("kernelTCP", none)
        .add("raw", stat.to_json())
        .add_if_any("psi", pressure(group, "memory.pressure"))
        .add("event_count", events.to_json())
        .text();
}

std::string v1_memory(int group) {
    const Figures stat(group, "memory.stat");
    const auto entry = [&](const std::string& prefix) {
        return memory_entry(number_in(group, prefix + "limit_in_bytes"), number_in(group, prefix + "usage_in_bytes"),
                            number_in(group, prefix + "max_usage_in_bytes"), number_in(group, prefix + "failcnt"));
    };
    return JsonObject()
        .add("cache", stat["cache"])
        .add("usage", entry("memory."))
        .add("swap", entry("memory.memsw."))
        .add("kernel", entry("memory.kmem."))
        .add("kernelTCP", entry("memory.kmem.tcp."))
        .add("raw", stat.to_json())
        .add("event_count", Figures(group, "memory.oom_control").to_json())
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

// What two of the keys say in lines as "8:0 rbytes=1 wbytes=2 rios=3 wios=4 ...".
std::string v2_io_entries(std::string_view stat, std::string_view read_key, std::string_view write_key) {
    std::vector<std::string> entries;
    for (const std::string_view line : split(stat, '\n')) {
        const std::vector<std::string_view> words = split(line, ' ');
        for (const std::string_view word : words) {
            const std::string_view key = word.substr(0, word.find('='));
            if (std::ranges::count(words[0], ':') != 1 || (key != read_key && key != write_key)) continue;
            entries.push_back(io_entry(words[0], key == read_key ? "Read" : "Write", word.substr(key.size() + 1)));
        }
    }
    return in_list(entries);
}

std::string v2_block_io(int group) {
    const std::string stat = text_of(group, "io.stat");
    return JsonObject()
        .add("ioServiceBytesRecursive", v2_io_entries(stat, "rbytes", "wbytes"))
        .add("ioServicedRecursive", v2_io_entries(stat, "rios", "wios"))
        .add_if_any("psi", pressure(group, "io.pressure"))
        .text();
}

// Lines are "8:0 Read 4096"; the sums over all devices have no device, and are left out.
std::string v1_io_entries(std::string_view text) {
    std::vector<std::string> entries;
    for (const std::string_view line : split(text, '\n')) {
        const std::vector<std::string_view> words = split(line, ' ');
        if (words.size() != 3 || std::ranges::count(words[0], ':') != 1) continue;
        entries.push_back(io_entry(words[0], words[1], words[2]));
    }
    return in_list(entries);
}

// The scheduler's figures, if a device has one that keeps them; else those of the throttle, which sees all devices.
std::string v1_io_figures(int group, const std::string& name) {
    const std::string scheduler = v1_io_entries(text_of(group, concat("blkio.bfq.", name)));
    return scheduler == "[]" ? v1_io_entries(text_of(group, concat("blkio.throttle.", name))) : scheduler;
}

std::string v1_block_io(int group) {
    return JsonObject()
        .add("ioServiceBytesRecursive", v1_io_figures(group, "io_service_bytes_recursive"))
        .add("ioServicedRecursive", v1_io_figures(group, "io_serviced_recursive"))
        .text();
}

std::string v2_huge_pages(int group) {
    return huge_pages(group, ".current", [&](const std::string& prefix) {
        return JsonObject()
            .add("usage", number_in(group, prefix + ".current"))
            .add("failcnt", Figures(group, prefix + ".events")["max"])
            .text();
    });
}

std::string v1_huge_pages(int group) {
    return huge_pages(group, ".usage_in_bytes", [&](const std::string& prefix) {
        return JsonObject()
            .add("usage", number_in(group, prefix + ".usage_in_bytes"))
            .add("max", number_in(group, prefix + ".max_usage_in_bytes"))
            .add("failcnt", number_in(group, prefix + ".failcnt"))
            .text();
    });
}

}  // namespace

std::string stats_to_json(int group, const V1GroupFds& v1) {
    const auto is_in = [&](const char* controller) { return v1.of(controller) >= 0; };
    return JsonObject()
        .add("cpu", is_in("cpuacct") ? v1_cpu(v1) : v2_cpu(group))
        .add("cpuset", "{}")
        .add("memory", is_in("memory") ? v1_memory(v1.of("memory")) : v2_memory(group))
        .add("pids", pids(is_in("pids") ? v1.of("pids") : group))
        .add("blkio", is_in("blkio") ? v1_block_io(v1.of("blkio")) : v2_block_io(group))
        .add("hugetlb", is_in("hugetlb") ? v1_huge_pages(v1.of("hugetlb")) : v2_huge_pages(group))
        .add("intel_rdt", "{}")
        .add("network_interfaces", "null")
        .text();
}

}  // namespace pinfold
