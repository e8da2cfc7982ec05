// What the end of a job amounts to.
#include "sandbox/classify.hpp"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"

namespace pinfold {

namespace {

// A process that RLIMIT_CPU has killed, where no group counts for all. It counts whole ticks of the clock for whoever
// has the processor then, which on a busy machine are more than what was used, and strikes before its time. The signal
// alone says nothing: anybody can send it.
bool ran_out_of_cpu(const JobCounts& counts, const SandboxResult& result) {
    if (!counts.cpu_timeout || counts.usage.cpu_usec || !result.cpu_seconds) return false;
    const double allowed = std::chrono::duration<double>(*counts.cpu_timeout).count();
    if (result.signal == SIGXCPU) return *result.cpu_seconds >= allowed / 2;
    return result.signal == SIGKILL && *result.cpu_seconds >= allowed;
}

SandboxStatus status_of(const JobEnd& end, const JobCounts& counts, const SandboxResult& result) {
    if (end.timed_out || ran_out_of_cpu(counts, result)) return SandboxStatus::timed_out;
    if (end.out_of_memory) return SandboxStatus::oom_killed;
    if (result.oom_kills.value_or(0) != 0 && result.exit_code != 0) return SandboxStatus::oom_killed;
    if (end.over_limit) return SandboxStatus::output_limit;
    return result.signal ? SandboxStatus::signaled : SandboxStatus::exited;
}

void take_usage(const JobEnd& end, const JobCounts& counts, SandboxResult& result) {
    GroupUsage usage = counts.usage;
    if (!usage.cpu_usec && end.payload) usage.cpu_usec = end.payload->cpu_usec;
    if (!usage.cpu_usec && end.cpu) usage.cpu_usec = uint64_t(end.cpu->count()) / 1000;
    if (!usage.peak_memory && end.payload) usage.peak_memory = end.payload->most_memory;
    if (!usage.peak_memory) usage.peak_memory = end.peak_memory;
    result.wall_seconds = std::chrono::duration<double>(end.wall).count();
    if (usage.cpu_usec) result.cpu_seconds = double(*usage.cpu_usec) / 1e6;
    result.peak_memory_bytes = usage.peak_memory;
    result.peak_processes = usage.peak_processes;
    result.read_bytes = usage.read_bytes;
    result.written_bytes = usage.written_bytes;
    result.oom_kills = counts.oom_kills;
}

std::string stopper_of(const JobEnd& end, const SandboxResult& result) {
    if (result.status == SandboxStatus::oom_killed) return "memory_mb";
    if (result.status != SandboxStatus::timed_out) return {};
    return end.timed_out && !end.cpu_timed_out ? "timeout_seconds" : "cpu_timeout_seconds";
}

// Memory that is watched, or held by rlimits alone, is also refused by those: that nobody sees.
std::optional<uint64_t> memory_hits(const EnforcedLimit& limit, const JobCounts& counts, const SandboxResult& result) {
    if (limit.enforced_by.starts_with("cgroup")) return counts.oom_kills;
    if (result.status == SandboxStatus::oom_killed) return 1;
    return std::nullopt;
}

void count_hits(const JobEnd& end, const JobCounts& counts, SandboxResult& result) {
    for (EnforcedLimit& limit : result.limits) {
        const bool by_group = limit.enforced_by.starts_with("cgroup");
        if (limit.name == "memory_mb") limit.hit = memory_hits(limit, counts, result);
        else if (limit.name == "cpu_cores" && by_group) limit.hit = counts.usage.throttled;
        else if (limit.name == "max_processes" && by_group) limit.hit = counts.usage.refused_forks;
        else if (limit.name == "disk_mb" && counts.disk_full) limit.hit = *counts.disk_full ? 1 : 0;
        else if (limit.name == "output_bytes") limit.hit = end.over_limit || end.dropped ? 1 : 0;
        else if (limit.name.ends_with("timeout_seconds")) limit.hit = limit.name == result.stopped_by ? 1 : 0;
    }
}

std::string in_megabytes(uint64_t bytes) { return concat(bytes >> 20, " MB"); }

std::string times(uint64_t count) { return count == 1 ? "once" : concat(count, " times"); }

const EnforcedLimit* limit_named(const SandboxResult& result, std::string_view name) {
    const auto found = std::ranges::find(result.limits, name, &EnforcedLimit::name);
    return found == result.limits.end() ? nullptr : &*found;
}

// As it was in the end, where a group has it.
std::string told_limit(const EnforcedLimit& limit) {
    const auto bytes = parse_number<uint64_t>(limit.value);
    const bool by_group = limit.enforced_by.starts_with("cgroup") && bytes;
    return by_group ? in_megabytes(*bytes) : concat(limit.asked, " MB");
}

std::string told_memory(const SandboxResult& result) {
    const EnforcedLimit* limit = limit_named(result, "memory_mb");
    const std::string peak = result.peak_memory_bytes ? concat("peak ", in_megabytes(*result.peak_memory_bytes)) : "";
    if (limit == nullptr) return concat("out of memory", peak.empty() ? "" : ": ", peak);
    return concat("out of memory: ", told_limit(*limit), peak.empty() ? "" : concat(" (", peak, ")"));
}

// Of one that ended by itself, and perhaps well.
std::string told_memory_hits(const EnforcedLimit& limit, const SandboxResult& result) {
    return concat("memory limit ", told_limit(limit), " was hit ", times(*limit.hit),
                  result.peak_memory_bytes ? concat(" (peak ", in_megabytes(*result.peak_memory_bytes), ')') : "");
}

std::string told_deadline(const SandboxResult& result) {
    const bool cpu = result.stopped_by == "cpu_timeout_seconds";
    const EnforcedLimit* limit = limit_named(result, result.stopped_by);
    return concat("killed after ", in_seconds(cpu ? result.cpu_seconds.value_or(0) : result.wall_seconds),
                  cpu ? " of processor time: --cpu-timeout" : ": --timeout",
                  limit == nullptr ? "" : concat(' ', limit->asked, 's'));
}

std::string told_signal(int number) {
    const char* name = ::sigabbrev_np(number);
    return concat("ended by signal ", number, name == nullptr ? "" : concat(" (SIG", name, ')'));
}

// Where no group holds the memory, an rlimit refuses what is above it, and the program may fail by that: nobody counts
// how often, but its peak tells.
std::string memory_hint(const SandboxResult& result) {
    const EnforcedLimit* limit = limit_named(result, "memory_mb");
    if (limit == nullptr || limit->enforced_by != "sampling" || !result.peak_memory_bytes) return {};
    const bool failed = result.status == SandboxStatus::signaled || result.exit_code.value_or(0) != 0;
    const uint64_t most = parse_number<uint64_t>(limit->value).value_or(UINT64_MAX);
    if (!failed || result.status == SandboxStatus::oom_killed || *result.peak_memory_bytes < most / 8 * 5) return {};
    return concat("it had used ", in_megabytes(*result.peak_memory_bytes), " of its memory, ", limit->asked,
                  " MB, and may have been refused more: where no cgroup holds it, an rlimit does: --memory");
}

// No file may be larger than all that may be written, wherever it is.
std::string size_hint(const SandboxResult& result) {
    const EnforcedLimit* limit = limit_named(result, "disk_mb");
    if (limit == nullptr || result.signal != SIGXFSZ) return {};
    return concat("no file may be larger than --disk, ", limit->asked, " MB");
}

}  // namespace

std::vector<std::string> explain(const SandboxResult& result) {
    std::vector<std::string> lines;
    if (result.status == SandboxStatus::timed_out) lines.push_back(told_deadline(result));
    if (result.status == SandboxStatus::oom_killed) lines.push_back(told_memory(result));
    if (result.status == SandboxStatus::signaled) lines.push_back(told_signal(result.signal.value_or(0)));
    if (result.status == SandboxStatus::output_limit)
        lines.emplace_back("printed more than --output-limit: the rest was dropped");
    const auto was_hit = [](const EnforcedLimit* limit) { return limit != nullptr && limit->hit.value_or(0) != 0; };
    const bool told = result.status == SandboxStatus::oom_killed;
    if (const EnforcedLimit* limit = limit_named(result, "memory_mb"); was_hit(limit) && !told)
        lines.push_back(told_memory_hits(*limit, result));
    if (const EnforcedLimit* limit = limit_named(result, "max_processes"); was_hit(limit))
        lines.push_back(concat("process limit ", limit->asked, " was hit ", times(*limit->hit)));
    if (const EnforcedLimit* limit = limit_named(result, "disk_mb"); was_hit(limit))
        lines.push_back(concat("disk ", limit->asked, " MB was full"));
    if (result.error.empty() && !result.hint.empty()) lines.push_back(concat("hint: ", result.hint));
    return lines;
}

std::optional<int> program_failure(std::string_view message) {
    constexpr int kNotExecutable = 126, kNotFound = 127;
    if (!message.starts_with("executable: ") && !message.starts_with("exec: ")) return std::nullopt;
    const auto says = [&](std::string_view words) { return message.find(words) != message.npos; };
    return says("executable file not found") || says("no such file or directory") ? kNotFound : kNotExecutable;
}

void keep_receipt(bool asked, SandboxResult& result) {
    if (result.receipt.empty()) return;
    std::string text;
    for (const ReceiptLine& line : result.receipt)
        text += concat(line.name, '\t', line.planned, '\t', line.found, '\t', line.holds ? "true" : "false", '\n');
    result.receipt_sha256 = to_hex(sha256(text));
    if (!asked && std::ranges::all_of(result.receipt, &ReceiptLine::holds)) result.receipt.clear();
}

SandboxResult failed_result(const Error& error) {
    SandboxResult result;
    result.error = error.message;
    result.hint = error.hint;
    result.exit_code = program_failure(error.message);
    return result;
}

void take_output(Output& output, SandboxResult& result) {
    result.out = output.take_text(0);
    result.err = output.take_text(1);
    result.truncated = output.over_limit() || output.has_dropped() || output.cut() || !output.failure().empty();
}

void classify(const JobEnd& end, const JobCounts& counts, SandboxResult& result) {
    if (!end.payload || end.payload->signaled) result.signal = end.payload ? end.payload->status : SIGKILL;
    else result.exit_code = end.payload->status;
    take_usage(end, counts, result);
    result.status = status_of(end, counts, result);
    result.stopped_by = stopper_of(end, result);
    count_hits(end, counts, result);
    result.hint = memory_hint(result);
    if (result.hint.empty()) result.hint = size_hint(result);
    result.error = end.output_error;
}

}  // namespace pinfold
