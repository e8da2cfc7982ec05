// One function per verb; each returns the program's exit code.
#pragma once

#include <string_view>

#include "cli/options.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

Result<int> verb_create(const RunOptions& options, const CommandLine& line);
Result<int> verb_run(const RunOptions& options, const CommandLine& line);
Result<int> verb_start(const std::string& id, const CommandLine& line);
Result<int> verb_exec(const ExecOptions& options, const CommandLine& line);
Result<int> verb_kill(const KillOptions& options, const CommandLine& line);
Result<int> verb_delete(const DeleteOptions& options, const CommandLine& line);
Result<int> verb_state(const std::string& id, const CommandLine& line);
Result<int> verb_list(const ListOptions& options, const CommandLine& line);
Result<int> verb_ps(const PsOptions& options, const CommandLine& line);
Result<int> verb_pause(const std::string& id, const CommandLine& line);
Result<int> verb_resume(const std::string& id, const CommandLine& line);
Result<int> verb_update(const UpdateOptions& options, const CommandLine& line);
Result<int> verb_events(const EventsOptions& options, const CommandLine& line);
Result<int> verb_cp(const CpOptions& options, const CommandLine& line);
Result<int> verb_spec(const SpecOptions& options, const CommandLine& line);
Result<int> verb_features();
Result<int> verb_audit_show(const AuditOptions& options, const CommandLine& line);
Result<int> verb_audit_verify(const AuditOptions& options, const CommandLine& line);
Result<int> verb_prune(const PruneOptions& options, const CommandLine& line);
Result<int> verb_sandbox(const SandboxOptions& options, const CommandLine& line);
Result<int> verb_seccomp_show(const SeccompShowOptions& options, const CommandLine& line);
Result<int> verb_seccomp_diff(const SeccompDiffOptions& options, const CommandLine& line);
Result<int> verb_seccomp_learn(const SeccompLearnOptions& options, const CommandLine& line);

// What cp copies from or to in a container. Nothing, where it is the host's.
struct PathInside {
    std::string id;
    std::string path;
};
std::optional<PathInside> inside_part(const std::string& argument);

// For what a verb answers: all of it on standard output, or an error.
Result<void> print(std::string_view text);

}  // namespace pinfold
