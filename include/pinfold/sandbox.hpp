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

// A file that is inside as /run/secrets/NAME, in memory, readable for the job's user alone.
struct Secret {
    std::string name;
    std::string file;
};

// A TCP port of this machine that leads to one inside.
struct PublishedPort {
    std::string address = "127.0.0.1";  // of this machine
    uint16_t host = 0;                  // 0: any that is free
    uint16_t inside = 0;
};

struct SandboxJob {
    std::vector<std::string> command;
    ResourceLimits limits;
    Network network = Network::none;
    std::vector<PublishedPort> publish;  // not with the host's network

    // Where its programs come from; at most one of the three. None: this machine's own programs and libraries.
    std::string rootfs;         // a directory
    std::string root_template;  // a part of this machine: the name of a template, or its file
    std::string bundle;  // an OCI bundle: its root, and its command, environment and directory where none are given

    std::vector<HostBind> binds;
    std::vector<FileCopy> copy_in;
    std::vector<FileCopy> copy_out;  // whatever end it came to; a source may be a pattern, as of a shell
    bool outward_links = false;      // copy links out, too, that lead out of the copied tree
    std::vector<std::string> env;    // NAME=VALUE
    std::vector<Secret> secrets;
    std::string cwd;      // empty: /workspace
    std::string user;     // UID[:GID]; empty: 1000:1000
    std::string seccomp;  // a shipped profile's name, or a file; empty: default or, with a network, network
    bool writable_root = false;
    std::string scratch;  // a directory for the work directory's disk, or "disk"; empty: it is in memory. Takes root

    // Of a sandbox that stays: a directory of the caller's that its work directory and /tmp are kept in, so that they
    // outlive it; empty: they are in memory. Their size is not limited then.
    std::string keep_files;

    // A script to be stored as that file in the work directory, before the command starts.
    std::string script_name;
    std::string script;

    int input = -1;  // its standard input; -1: nothing to read
    bool terminal =
        false;             // of its own, between which and our standard streams all is passed on; for programs with one
    bool capture = false;  // keep what it prints in the result, instead of passing it on
    bool tee = false;      // with that: pass it on as well
    bool merge_output = false;  // standard error goes where standard output does, in the order in which it is written
    uint64_t output_limit =
        0;  // bytes of both streams together; 0: none, or 16 MiB where they are kept, at most 256 MiB
    std::optional<std::chrono::nanoseconds> cpu_timeout;
    bool require_cgroup = false;
    // A limit that cannot be held for this caller is an error where it is not the default, or is named in the first of
    // these; unless the second names it: "cpu_cores".
    std::vector<std::string> must_hold;
    std::vector<std::string> allow_unenforced;
    bool receipt = false;  // in the result, even where all is as planned
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
    std::string enforced_by;  // "cgroup2", "tmpfs", "timer", ...: see pinfold-result(5); empty: nothing
    std::string value;        // read back: "536870912"
    // How often it was met: processes killed, forks refused, periods throttled; 1 for a time that was over or a disk
    // that was full at the end. None: nobody counts it.
    std::optional<uint64_t> hit{};
};

// A copy_out that failed; of a pattern, what one name of those that it stands for came to.
struct CopyFailure {
    std::string source;
    std::string destination;
    std::string error;
    std::string hint;
};

struct SandboxResult {
    SandboxStatus status = SandboxStatus::setup_failed;
    std::optional<int> exit_code;  // of the payload; none if a signal ended it; 126, 127: it could not be executed
    std::optional<int> signal;
    std::string stopped_by;  // the limit that ended it, by its name; empty: none did
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
    Receipt receipt;  // empty where it holds and was not asked for
    std::string receipt_sha256;
    std::optional<int> landlock_abi;  // nothing: without it
    std::vector<CopyFailure> copy_failures;
    std::vector<PublishedPort> published;  // with the ports that were got
    std::string error;  // why it could not be set up, or where its output could not be written to; and what would help
    std::string hint;   // also where a call that was denied came right before a failure
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
    bool receipt = false;              // in the result, even where all is as planned
    bool merge_output = false;         // both streams as one, in `out`
    // The command is words for a shell, which go on in the working directory and with the environment that the last
    // ones of this session have left; empty: it is a program and its arguments.
    std::string session{};
};

// A sandbox that stays, and goes with this object; files that are kept stay.
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
    // How its command has ended, with what is kept of what it has printed; waits for it.
    SandboxResult wait() const;
    // The ports of this machine that lead into it, none of them 0.
    Result<std::vector<PublishedPort>> published() const;
    // What is kept so far.
    struct Output {
        std::string out;
        std::string err;
    };
    Result<Output> output() const;
    // SIGTERM, and after that time, SIGKILL to all that is left. Its output and its result stay until cleanup().
    Result<void> stop(std::chrono::nanoseconds time = std::chrono::seconds(10)) const;
    // Of one that has stopped, and whose files are kept (SandboxJob::keep_files): with the same command, limits and
    // files. Copies in are not repeated, and what it has printed begins anew.
    Result<void> restart() const;
    // Paths are the sandbox's; links lead nowhere else. Of one that has stopped, those that are kept can be had. At
    // most `max` bytes are read.
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

// What a program that wraps the job exits with: the payload's code, 128 + its signal, 124 timed out, 125 not set up
// or, where the payload has succeeded, its output could not be written, 126 a program that cannot be executed, 127 one
// that is not there, 137 out of memory.
int exit_code_of(const SandboxResult& result);

// What stopped it and which limits it has met, a line for each: "killed after 2.0 s: --timeout 2s". Empty: it ended by
// itself and met none.
std::vector<std::string> explain(const SandboxResult& result);

// As pinfold-result(5) describes it.
std::string to_json(const SandboxResult& result);
Result<SandboxResult> parse_result(std::string_view json);

}  // namespace pinfold
