// One struct per verb, what the command line said of it, and the function that carries it out; that returns the
// program's exit code.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "cgroup/plan.hpp"
#include "cli/option_table.hpp"
#include "pinfold/result.hpp"
#include "policy/gate.hpp"
#include "process/child_options.hpp"

namespace pinfold {

class ResultFile;

struct GlobalOptions {
    std::string root;  // of the state directories
    bool root_is_default = true;
    LogOptions log;
    CgroupManager cgroup_manager = CgroupManager::cgroupfs;
    bool systemd_cgroup = false;   // the same as that manager
    std::optional<bool> rootless;  // empty: what the caller's uid says
    std::string policy;            // on top of the system's; empty: none
    std::string audit;             // log events to this file, too; empty: only where a policy says
};

struct CommandLine {
    GlobalOptions global;
    char** argv = nullptr;
    std::string words;                  // of the verb: "run", "seccomp show"
    std::string target;                 // the container that it is about; empty: none
    OptionTable verb;                   // with all options, also the global ones
    const Gate* gate = nullptr;         // that main has opened
    ResultFile* result_file = nullptr;  // main's: opened before the verb begins, if --result names it
    std::string title;                  // "run 'web'": what an error begins with
    int failure = 1;                    // the exit code that says so
};

// create and run, which has --detach, --keep and --no-subreaper, too.
struct RunOptions {
    std::string id;
    std::string bundle = ".";
    std::string config;  // empty: BUNDLE/config.json
    ChildOptions child;
    bool no_pivot = false;
    bool no_new_keyring = false;
    bool no_subreaper = false;  // pinfold never is one
    bool keep = false;
    bool dry_run = false;
    bool strict = false;
};
Result<int> verb_create(const RunOptions& options, const CommandLine& line);
Result<int> verb_run(const RunOptions& options, const CommandLine& line);

Result<int> verb_start(const std::string& id, const CommandLine& line);

struct ExecOptions {
    std::string id;
    std::vector<std::string> args;
    std::string process_file;
    std::string cwd;
    std::vector<std::string> env;  // NAME=VALUE or NAME
    std::string env_file;
    std::string user;  // UID[:GID] or NAME[:GROUP]
    std::vector<uint32_t> additional_gids;
    std::vector<std::string> capabilities;
    std::string process_label;
    std::string apparmor;
    std::string cgroup;   // [CONTROLLER:]PATH below the container's group
    std::string session;  // whose directory and environment go on; empty: none
    std::string timeout;
    std::string output_limit;
    std::string result;  // a file; "-": standard output
    bool receipt = false;
    bool verbose = false;
    bool capture = false;
    bool tee = false;
    bool merge_output = false;
    ChildOptions child;
    bool terminal = false;
    bool no_new_privileges = false;
    bool ignore_paused = false;
    bool strict = false;
};
Result<int> verb_exec(const ExecOptions& options, const CommandLine& line);

struct KillOptions {
    std::string id;
    std::string signal = "TERM";
    bool all = false;
};
Result<int> verb_kill(const KillOptions& options, const CommandLine& line);

struct DeleteOptions {
    std::string id;
    bool force = false;
};
Result<int> verb_delete(const DeleteOptions& options, const CommandLine& line);

Result<int> verb_state(const std::string& id, const CommandLine& line);

struct ListOptions {
    bool quiet = false;
    bool json = false;
};
Result<int> verb_list(const ListOptions& options, const CommandLine& line);

struct PsOptions {
    std::string id;
    bool json = false;
    std::vector<std::string> args;  // for ps(1)
};
Result<int> verb_ps(const PsOptions& options, const CommandLine& line);

Result<int> verb_pause(const std::string& id, const CommandLine& line);
Result<int> verb_resume(const std::string& id, const CommandLine& line);

// Empty: not given. Sizes are text, since "100M" and "-1" are among them.
struct UpdateOptions {
    std::string id;
    std::string resources_file;  // "-": standard input
    std::string memory;
    std::string memory_swap;
    std::string memory_reservation;
    std::string kernel_memory;
    std::string kernel_memory_tcp;
    std::optional<uint64_t> cpu_shares;
    std::optional<int64_t> cpu_quota;
    std::optional<uint64_t> cpu_period;
    std::optional<uint64_t> cpu_burst;
    std::optional<int64_t> cpu_idle;
    std::optional<uint64_t> cpu_rt_period;
    std::optional<int64_t> cpu_rt_runtime;
    std::string cpuset_cpus;
    std::string cpuset_mems;
    std::optional<int64_t> pids_limit;
    std::optional<uint16_t> blkio_weight;
};
Result<int> verb_update(const UpdateOptions& options, const CommandLine& line);

struct EventsOptions {
    std::string id;
    bool stats = false;
    std::string interval = "5s";
};
Result<int> verb_events(const EventsOptions& options, const CommandLine& line);

struct CpOptions {
    std::string source;  // ID:PATH, a path of the host, or "-"
    std::string target;
    std::string max_size = "1G";
    uint64_t max_files = 100'000;
    bool outward_links = false;
};
Result<int> verb_cp(const CpOptions& options, const CommandLine& line);

// What cp copies from or to in a container. Nothing, where it is the host's.
struct PathInside {
    std::string id;
    std::string path;
};
std::optional<PathInside> inside_part(const std::string& argument);

// ResourceLimits, as the command line says them. Empty: not given.
struct LimitOptions {
    std::string file;  // JSON
    std::optional<double> cpus;
    std::string memory;
    std::string disk;
    std::string network;  // none, host, pasta
    std::optional<uint64_t> processes;
    std::string timeout;

    bool any() const;
};

struct SpecOptions {
    std::string bundle = ".";
    bool rootless = false;
    LimitOptions limits;
    std::string seccomp;
    std::vector<std::string> args;
};
Result<int> verb_spec(const SpecOptions& options, const CommandLine& line);

Result<int> verb_features();

struct SandboxOptions {
    LimitOptions limits;
    std::vector<std::string> args;
    std::string language;
    std::string rootfs;
    std::string root_template;
    std::string bundle;
    std::vector<std::string> binds;  // SRC[:DST]
    std::vector<std::string> readonly_binds;
    std::vector<std::string> copies_in;  // SRC:DST
    std::vector<std::string> copies_out;
    bool outward_links = false;
    std::vector<std::string> env;  // NAME=VALUE or NAME
    std::string env_file;
    std::vector<std::string> secrets;  // NAME=FILE
    std::string cwd;
    std::string user;
    std::string seccomp;  // empty: what fits the network
    std::string cpu_timeout;
    std::string output_limit;
    std::string result;  // a file; "-": standard output
    bool receipt = false;
    bool verbose = false;
    std::string name;
    std::string idle_timeout;
    bool detach = false;
    bool terminal = false;
    bool no_terminal = false;
    std::string runtime;
    bool pass_stdin = false;
    bool capture = false;
    bool tee = false;
    bool merge_output = false;
    bool writable_root = false;
    std::string scratch;
    std::string keep_files;
    bool require_cgroup = false;
    std::vector<std::string> allow_unenforced;  // limits, by name
    bool strict = true;
    bool landlock = true;
    std::string tcp_bind;  // ports; empty: what fits the network
    std::string tcp_connect;
    std::vector<std::string> publish;  // [ADDR:]HOST:INSIDE
};
Result<int> verb_sandbox(const SandboxOptions& options, const CommandLine& line);

struct LogsOptions {
    std::string id;
    bool follow = false;
};
Result<int> verb_logs(const LogsOptions& options, const CommandLine& line);

struct WaitOptions {
    std::string id;
    std::string result;  // a file; "-": standard output
};
Result<int> verb_wait(const WaitOptions& options, const CommandLine& line);

struct StopOptions {
    std::string id;
    std::string time = "10s";
};
Result<int> verb_stop(const StopOptions& options, const CommandLine& line);

struct PruneOptions {
    bool dry_run = false;
    std::string older_than;  // a time; empty: however short ago they ended
};
Result<int> verb_prune(const PruneOptions& options, const CommandLine& line);

struct SeccompShowOptions {
    std::string profile;  // a name or a path; empty: list them
    bool json = false;
};
Result<int> verb_seccomp_show(const SeccompShowOptions& options, const CommandLine& line);

struct SeccompDiffOptions {
    std::string from;
    std::string to;
};
Result<int> verb_seccomp_diff(const SeccompDiffOptions& options, const CommandLine& line);

struct SeccompLearnOptions : SandboxOptions {
    std::string output;  // a file; empty: standard output
};
Result<int> verb_seccomp_learn(const SeccompLearnOptions& options, const CommandLine& line);

struct TemplateListOptions {
    bool json = false;
};
Result<int> verb_template_list(const TemplateListOptions& options, const CommandLine& line);

struct TemplateShowOptions {
    std::string name;  // or a file
    bool json = false;
};
Result<int> verb_template_show(const TemplateShowOptions& options, const CommandLine& line);

struct TemplateAddOptions {
    std::string name;
    std::string file;  // "-": standard input
    bool replace = false;
};
Result<int> verb_template_add(const TemplateAddOptions& options, const CommandLine& line);

// show and verify, which has the file alone.
struct AuditOptions {
    std::string file;       // empty: the policy's
    std::string container;  // empty: all
    std::string event;      // empty: all
    bool json = false;
};
Result<int> verb_audit_show(const AuditOptions& options, const CommandLine& line);
Result<int> verb_audit_verify(const AuditOptions& options, const CommandLine& line);

// For what a verb answers: all of it on standard output, or an error.
Result<void> print(std::string_view text);

// Rows of as many words each, in columns as wide as their widest word, with two blanks between them.
std::string in_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace pinfold
