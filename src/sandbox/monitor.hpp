// The monitor: a process that stays with the command of a sandbox that stays. It keeps what the command prints, holds
// the command to its limits, and writes down how it ended. It has nothing of the caller's. If it is killed, so is the
// sandbox, as a job is whose supervisor is killed.
//
// A sandbox that has no command has no monitor either.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "sandbox/output_log.hpp"
#include "sandbox/prepare_job.hpp"
#include "sandbox/run_job.hpp"
#include "state/store.hpp"

namespace pinfold {

inline constexpr const char* kOutputFile = "output";  // in the state directory: what the command has printed

// The sandbox's name, once its command runs. The monitor is forked for it.
Result<std::string> start_monitored(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting);

struct SandboxEnd {
    std::string at;  // RFC 3339
    SandboxResult result;
};

// Nothing as long as it runs, and where nobody has written it down.
Result<std::optional<SandboxEnd>> load_end(const std::string& root, const std::string& id);

// Waits for it. With `output`, what is kept of what it has printed is in the result.
Result<SandboxEnd> await_sandbox(const std::string& root, const std::string& id, bool output);

// Until whoever stops it has written down that it did.
Result<void> await_stopper(const std::string& root, const std::string& id);

// SIGTERM, and when the time is over, SIGKILL to all that is left. Returns when it has ended, and at once where it had.
Result<void> stop_sandbox(const std::string& root, const std::string& id, std::chrono::nanoseconds time);

// What it has printed so far; or until it has ended.
Result<void> show_output(const std::string& root, const std::string& id, bool follow, const OutputSink& sink);

// What is known of a sandbox besides its state, for `state` and `list`; nothing of another container.
struct SandboxView {
    std::vector<std::string> command;              // empty: it only stays
    std::optional<uint64_t> memory, memory_limit;  // bytes, now
    std::optional<uint64_t> processes, process_limit;
    std::optional<uint64_t> cpu_usec;
    std::optional<SandboxEnd> end;
};
std::optional<SandboxView> view_sandbox(const std::string& root, const ContainerState& state);
MoreMembers members_of(const SandboxView& view);

}  // namespace pinfold
