// What the end of a job amounts to.
#include "sandbox/classify.hpp"

#include <signal.h>

namespace pinfold {

namespace {

SandboxStatus status_of(const JobEnd& end, const JobCounts& counts, const SandboxResult& result) {
    // A process that RLIMIT_CPU has killed, where no group counts for all. It strikes a tick before its time.
    const bool out_of_time =
        counts.cpu_timeout && result.signal && result.cpu_seconds &&
        (*result.cpu_seconds >= std::chrono::duration<double>(*counts.cpu_timeout).count() || result.signal == SIGXCPU);
    if (end.timed_out || out_of_time) return SandboxStatus::timed_out;
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
    result.wall_seconds = std::chrono::duration<double>(end.wall).count();
    if (usage.cpu_usec) result.cpu_seconds = double(*usage.cpu_usec) / 1e6;
    result.peak_memory_bytes = usage.peak_memory;
    result.peak_processes = usage.peak_processes;
    result.read_bytes = usage.read_bytes;
    result.written_bytes = usage.written_bytes;
    result.oom_kills = counts.oom_kills;
}

}  // namespace

SandboxResult failed_result(const Error& error) {
    SandboxResult result;
    result.error = error.message;
    result.hint = error.hint;
    return result;
}

void take_output(Output& output, SandboxResult& result) {
    result.out = output.take_text(0);
    result.err = output.take_text(1);
    result.truncated = output.over_limit() || output.cut();
}

void classify(const JobEnd& end, const JobCounts& counts, SandboxResult& result) {
    if (!end.payload || end.payload->signaled) result.signal = end.payload ? end.payload->status : SIGKILL;
    else result.exit_code = end.payload->status;
    take_usage(end, counts, result);
    result.status = status_of(end, counts, result);
}

}  // namespace pinfold
