// What the command line said, as plain data: one struct per verb.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"
#include "policy/gate.hpp"
#include "process/child_options.hpp"

namespace pinfold {

struct GlobalOptions {
    std::string root;  // of the state directories
    bool root_is_default = true;
    LogOptions log;
    CgroupManager cgroup_manager = CgroupManager::cgroupfs;
    std::optional<bool> rootless;  // empty: what the caller's uid says
    std::string policy;            // on top of the system's; empty: none
    std::string audit;             // log events to this file, too; empty: only where a policy says
};

// create and run, which has --detach and the last two, too.
struct RunOptions {
    std::string id;
    std::string bundle = ".";
    std::string config;  // empty: BUNDLE/config.json
    ChildOptions child;
    bool no_pivot = false;
    bool no_new_keyring = false;
    bool keep = false;
    bool dry_run = false;
    bool strict = false;
};

struct ExecOptions {
    std::string id;
    std::vector<std::string> args;
    std::string process_file;
    std::string cwd;
    std::vector<std::string> env;
    std::string user;  // UID[:GID] or NAME[:GROUP]
    std::vector<uint32_t> additional_gids;
    std::vector<std::string> capabilities;
    std::string process_label;
    std::string apparmor;
    std::string cgroup;  // [CONTROLLER:]PATH below the container's group
    std::string timeout;
    std::string output_limit;
    std::string result;  // a file; "-": standard output
    bool capture = false;
    ChildOptions child;
    bool terminal = false;
    bool no_new_privileges = false;
    bool ignore_paused = false;
    bool strict = false;
};

struct KillOptions {
    std::string id;
    std::string signal = "TERM";
    bool all = false;
};

struct DeleteOptions {
    std::string id;
    bool force = false;
};

struct ListOptions {
    bool quiet = false;
    bool json = false;
};

struct PsOptions {
    std::string id;
    bool json = false;
    std::vector<std::string> args;  // for ps(1)
};

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

struct CpOptions {
    std::string source;  // ID:PATH, a path of the host, or "-"
    std::string target;
    std::string max_size = "1G";
    uint64_t max_files = 100'000;
    bool outward_links = false;
};

struct EventsOptions {
    std::string id;
    bool stats = false;
    std::string interval = "5s";
};

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

struct PruneOptions {
    bool dry_run = false;
};

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
    std::vector<std::string> env;
    std::string cwd;
    std::string user;
    std::string seccomp;  // empty: what fits the network
    std::string cpu_timeout;
    std::string output_limit;
    std::string result;  // a file; "-": standard output
    std::string name;
    std::string idle_timeout;
    bool detach = false;
    std::string runtime;
    bool pass_stdin = false;
    bool capture = false;
    bool writable_root = false;
    bool require_cgroup = false;
    bool strict = true;
    bool landlock = true;
    std::string tcp_bind;  // ports; empty: what fits the network
    std::string tcp_connect;
};

struct SeccompLearnOptions : SandboxOptions {
    std::string output;  // a file; empty: standard output
};

struct SeccompShowOptions {
    std::string profile;  // a name or a path; empty: list them
    bool json = false;
};

struct SeccompDiffOptions {
    std::string from;
    std::string to;
};

// show and verify, which has the file alone.
struct AuditOptions {
    std::string file;       // empty: the policy's
    std::string container;  // empty: all
    std::string event;      // empty: all
    bool json = false;
};

// A value on the command line that names something of the host's.
struct NamedPath {
    std::string option;
    PathUse use;
    std::string* value;
};

struct CommandLine {
    GlobalOptions global;
    char** argv = nullptr;
    std::string words;             // of the verb: "run", "seccomp show"
    std::string target;            // the container that it is about; empty: none
    std::vector<NamedPath> paths;  // what main takes through the gate before the verb begins
    const Gate* gate = nullptr;    // that main has opened
    std::string title;             // "run 'web'": what an error begins with
    std::function<Result<int>(const CommandLine&)> verb;
    int failure = 1;  // the exit code that says so
};

}  // namespace pinfold
