// Untrusted code as one call: a job in; output, status, usage and what was denied out.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pinfold/receipt.hpp"
#include "pinfold/resource_limits.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

enum class Network : uint8_t {
    none,   // not even the host's own services can be reached
    host,   // the host's, with all that listens there
    pasta,  // its own, translated by pasta(1): the world, but no service that only the host can reach
};

struct HostBind {
    std::string source;
    std::string destination;
    bool writable = false;
};

struct FileCopy {
    std::string source;
    std::string destination;
};

struct SandboxJob {
    std::vector<std::string> command;
    ResourceLimits limits;
    Network network = Network::none;

    // Where its programs come from; at most one of the three. None: this machine's own programs and libraries.
    std::string rootfs;         // a directory
    std::string root_template;  // a part of this machine: a name of bundles/, or a file
    std::string bundle;  // an OCI bundle: its root, and its command, environment and directory where none are given

    std::vector<HostBind> binds;
    std::vector<FileCopy> copy_in;
    std::vector<FileCopy> copy_out;
    std::vector<std::string> env;  // NAME=VALUE
    std::string cwd;               // empty: /workspace
    std::string user;              // UID[:GID]; empty: 1000:1000
    std::string seccomp;           // a shipped profile's name, or a file; empty: default or, with a network, network
    bool writable_root = false;

    // A script to be stored as that file in the work directory, before the command starts.
    std::string script_name;
    std::string script;

    int input = -1;        // its standard input; -1: nothing to read
    bool capture = false;  // keep what it prints in the result, instead of passing it on
    uint64_t output_limit =
        0;  // bytes of both streams together; 0: none, or 16 MiB where they are kept, at most 256 MiB
    std::optional<std::chrono::nanoseconds> cpu_timeout;
    bool require_cgroup = false;
    bool landlock = true;  // where the kernel has it
    // TCP ports that it may listen on and connect to: "80,443", "any", "none". Empty: any; but on the host's network,
    // none to listen on.
    std::string tcp_bind;
    std::string tcp_connect;
    bool strict = true;   // not started unless the kernel says that everything is as planned
    std::string runtime;  // another OCI runtime that is to run it, by name or path; empty: pinfold itself

    std::string name;  // of the sandbox; empty: one is made up

    // Of a sandbox that stays: until it ends by itself, and until prune may remove it for not being used.
    std::optional<std::chrono::nanoseconds> lifetime;
    std::optional<std::chrono::nanoseconds> idle_timeout;
};

enum class SandboxStatus : uint8_t { exited, signaled, timed_out, oom_killed, output_limit, setup_failed };

const char* status_word(SandboxStatus status);  // "timed_out"

// A system call that the profile forbids, all attempts together.
struct DeniedCall {
    std::string name;
    uint64_t count = 0;
    std::array<uint64_t, 6> arguments{};  // of the first attempt
    std::string program;                  // that made it
};

// A limit that was asked for, and what the kernel says of it.
struct EnforcedLimit {
    std::string name;         // "memory_mb"
    std::string asked;        // "512"
    std::string enforced_by;  // cgroup2, cgroup1, rlimit, sampling, tmpfs, timer, namespace, runtime; or nothing
    std::string value;        // read back: "536870912"
};

struct SandboxResult {
    SandboxStatus status = SandboxStatus::setup_failed;
    std::optional<int> exit_code;  // of the payload; none if a signal ended it
    std::optional<int> signal;
    std::string out;
    std::string err;
    bool truncated = false;
    double wall_seconds = 0;
    std::optional<double> cpu_seconds;
    std::optional<uint64_t> peak_memory_bytes;
    std::optional<uint64_t> peak_processes;
    std::optional<uint64_t> read_bytes;
    std::optional<uint64_t> written_bytes;
    std::optional<uint64_t> oom_kills;
    std::optional<std::vector<DeniedCall>> denied = std::vector<DeniedCall>();  // none: unknown
    std::vector<EnforcedLimit> limits;
    Receipt receipt;
    std::optional<int> landlock_abi;  // nothing: without it
    std::string error;  // why it could not be set up, or what could not be copied out of it; and what would help
    std::string hint;
};

// Where jobs are run.
struct RunnerOptions {
    std::string state_root;  // of the sandboxes' states; empty: where the program pinfold keeps them
    std::string policy;      // a file that forbids more than the system's policy does; empty: none
    std::string audit;       // a log besides those that the policies name; empty: none
};

// Runs jobs to their end. Each is supervised by a process of its own, forked from the caller's: threads, signals and
// children of the caller are left alone, and what it prints is always in the result.
class SandboxRunner {
public:
    explicit SandboxRunner(RunnerOptions options = {}) : options_(std::move(options)) {}

    SandboxResult run_command(std::vector<std::string> command, SandboxJob job = {}) const;
    // "python", "bash", "node", ...; see pinfold-sandbox(1).
    SandboxResult run_code(const std::string& language, std::string code, SandboxJob job = {}) const;

private:
    RunnerOptions options_;
};

// What one more program in a sandbox may do.
struct ExecLimits {
    std::optional<std::chrono::nanoseconds> timeout;
    uint64_t output_limit = 16 << 20;  // at most 256 MiB
    int input = -1;                    // its standard input; -1: nothing to read
};

// A sandbox that stays, and goes with this object.
class Sandbox {
public:
    static Result<Sandbox> start(SandboxJob job = {}, RunnerOptions options = {});
    Sandbox(Sandbox&& other) noexcept;
    Sandbox& operator=(Sandbox&&) = delete;
    Sandbox(const Sandbox&) = delete;
    Sandbox& operator=(const Sandbox&) = delete;
    ~Sandbox();

    const std::string& name() const { return name_; }
    SandboxResult exec(std::vector<std::string> command, const ExecLimits& limits = {}) const;
    // Paths are the sandbox's; links lead nowhere else. At most `max` bytes are read.
    Result<std::string> read_file(const std::string& path, uint64_t max = 16 << 20) const;
    Result<void> write_file(const std::string& path, std::string_view bytes, unsigned mode = 0644) const;
    // A file or a tree, as pinfold-cp(1) does it, if the policy allows the host's path.
    Result<void> copy_to(const std::string& host_path, const std::string& path) const;
    Result<void> copy_from(const std::string& path, const std::string& host_path) const;
    Result<void> cleanup();

private:
    Sandbox(std::string name, RunnerOptions options) : name_(std::move(name)), options_(std::move(options)) {}

    std::string name_;  // empty: it was cleaned up
    RunnerOptions options_;
};

// What a program that wraps the job exits with: the payload's code, 128 + its signal, 124 timed out, 125 not set up,
// 137 out of memory.
int exit_code_of(const SandboxResult& result);

// As pinfold-result(5) describes it.
std::string to_json(const SandboxResult& result);
Result<SandboxResult> parse_result(std::string_view json);

}  // namespace pinfold
