// What a container has used, in few numbers.
#include "cgroup/usage.hpp"

#include <fcntl.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kNanoseconds = 1000;  // in a microsecond

// The text of a control file; nothing where there is none. The controller is v1's where that is mounted.
struct Control {
    std::string text;
    bool v1 = false;
};

std::optional<Control> read_either(const CgroupPath& place, const std::string& v2, const std::string& v1) {
    if (!place.exists()) return std::nullopt;
    const auto mount = place.v1.find(v1.substr(0, v1.find('.')));
    const bool is_v1 = mount != place.v1.end();
    if (!is_v1 && place.mount.empty()) return std::nullopt;
    const std::string file =
        is_v1 ? concat(mount->second, place.path, '/', v1) : concat(place.mount, place.path, '/', v2);
    const Result<std::string> text = read_long_control(AT_FDCWD, file);
    if (!text) return std::nullopt;
    return Control{*text, is_v1};
}

std::string_view first_line(std::string_view text) { return split(text, '\n')[0]; }

std::optional<uint64_t> number_in(const CgroupPath& place, const std::string& v2, const std::string& v1) {
    const auto control = read_either(place, v2, v1);
    return control ? parse_number<uint64_t>(first_line(control->text)) : std::nullopt;
}

// The sum over all devices: "8:0 rbytes=1 wbytes=2 ..." in v2, "8:0 Read 1" in v1.
uint64_t sum_of(std::string_view text, std::string_view key) {
    uint64_t sum = 0;
    for (const std::string_view line : split(text, '\n')) {
        const size_t found = line.find(key);
        if (found == line.npos) continue;
        const std::string_view number = line.substr(found + key.size());
        sum += parse_number<uint64_t>(number.substr(0, number.find(' '))).value_or(0);
    }
    return sum;
}

}  // namespace

std::optional<uint64_t> measure_cpu(const CgroupPath& place) {
    const auto control = read_either(place, "cpu.stat", "cpuacct.usage");
    if (!control) return std::nullopt;
    if (!control->v1) return event_count(control->text, "usage_usec");
    const auto nanoseconds = parse_number<uint64_t>(first_line(control->text));
    return nanoseconds ? std::optional(*nanoseconds / kNanoseconds) : std::nullopt;
}

GroupUsage measure_usage(const CgroupPath& place) {
    GroupUsage usage;
    usage.cpu_usec = measure_cpu(place);
    usage.peak_memory = number_in(place, "memory.peak", "memory.max_usage_in_bytes");
    usage.peak_processes = number_in(place, "pids.peak", "pids.peak");
    if (const auto io = read_either(place, "io.stat", "blkio.throttle.io_service_bytes_recursive")) {
        usage.read_bytes = sum_of(io->text, io->v1 ? " Read " : " rbytes=");
        usage.written_bytes = sum_of(io->text, io->v1 ? " Write " : " wbytes=");
    }
    return usage;
}

std::optional<GroupLimit> read_limit(const CgroupPath& place, const std::string& v2_file, const std::string& v1_file) {
    const auto control = read_either(place, v2_file, v1_file);
    if (!control) return std::nullopt;
    return GroupLimit{std::string(first_line(control->text)), control->v1};
}

OomCount count_oom(const CgroupPath& place) {
    const auto events = read_either(place, "memory.events", "memory.oom_control");
    const auto limit = read_either(place, "memory.max", "memory.limit_in_bytes");
    if (!events || !limit) return {};
    OomCount count{event_count(events->text, "oom_kill"), event_count(events->text, "oom") != 0,
                   parse_number<uint64_t>(first_line(limit->text)).value_or(0)};
    // cgroup v1 does not tell whose limit it was; one that was never reached was not the reason.
    if (events->v1) {
        const auto reached = number_in(place, {}, "memory.failcnt");
        if (!reached) return {};
        count.at_limit = count.kills != 0 && *reached != 0;
    }
    return count;
}

}  // namespace pinfold
