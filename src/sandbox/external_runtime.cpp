// Other OCI runtimes that a job can be handed to.
#include "sandbox/external_runtime.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>

#include "base/process.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/payload_steps.hpp"
#include "process/supervise.hpp"

namespace pinfold {

namespace {

struct KnownRuntime {
    std::string_view name;
    std::string_view package;
    std::string_view flag;  // empty: none
    std::string_view without_network;
    std::string_view with_network;
    int64_t own_threads = 0;
    int64_t threads_per_process = 1;
};

// gVisor is a kernel in a process: a profile for system calls is for that kernel, if it is told so, and each process
// that it runs takes the host dozens of threads, which the group counts (measured: 37 and up to 57).
constexpr KnownRuntime kKnown[] = {
    {"runc", "apt install runc", "", "", ""},
    {"crun", "apt install crun", "", "", ""},
    {"runsc", "apt install runsc", "--oci-seccomp", "--network=none", "--network=host", 256, 64},
    {"kata-runtime", "see https://katacontainers.io for packages", "", "", ""},
};

constexpr int kPatience = 120000;  // milliseconds; a start on a slow machine takes seconds

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

const KnownRuntime* find_known(std::string_view path) {
    const auto* known = std::ranges::find(kKnown, last_part(path), &KnownRuntime::name);
    return known == std::end(kKnown) ? nullptr : known;
}

// Also where only an administrator's PATH leads.
Result<std::string> look_for(const std::string& name, bool callers_path) {
    const char* path = callers_path ? ::getenv("PATH") : "/usr/local/bin:/usr/bin:/bin";
    return find_executable(name,
                           {concat("PATH=", path != nullptr ? path : "/bin", ":/usr/local/sbin:/usr/sbin:/sbin")});
}

std::vector<std::string> own_environment() {
    std::vector<std::string> list;
    for (char** one = environ; *one != nullptr; ++one) list.emplace_back(*one);
    return list;
}

// Whoever runs the job gets no descriptor and no signal setting of ours.
[[noreturn]] void become_runtime(const std::vector<std::string>& words, const CallStreams& streams) {
    reset_signals();
    const UniqueFd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const int wanted[] = {streams.in, streams.out, streams.err};
    for (int fd = 0; fd < 3; ++fd) {
        if (::dup2(wanted[fd] >= 0 ? wanted[fd] : nowhere.get(), fd) < 0) ::_exit(127);
    }
    if (::close_range(3, UINT_MAX, 0) == 0) execute(words[0], words, own_environment());
    ::_exit(127);
}

}  // namespace

Result<ExternalRuntime> find_runtime(const std::string& name, Network network, bool callers_path) {
    const KnownRuntime* known = find_known(name);
    const Result<std::string> path = look_for(name, callers_path);
    if (!path) {
        return plain_error(concat("--runtime ", quoted(name), ": no such program is installed"))
            .with_hint(known != nullptr ? std::string(known->package) : "runc, crun, runsc, kata-runtime, or a path");
    }
    ExternalRuntime runtime{.path = *path};
    if (known == nullptr) return runtime;
    for (const std::string_view flag :
         {known->flag, network == Network::none ? known->without_network : known->with_network}) {
        if (!flag.empty()) runtime.flags.emplace_back(flag);
    }
    runtime.own_threads = known->own_threads;
    runtime.threads_per_process = known->threads_per_process;
    return runtime;
}

Result<int> call_runtime(const ExternalRuntime& runtime, const std::vector<std::string>& words,
                         const CallStreams& streams) {
    std::vector<std::string> line = {runtime.path};
    line.insert(line.end(), runtime.flags.begin(), runtime.flags.end());
    line.insert(line.end(), words.begin(), words.end());
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error(concat("start ", runtime.path, ": fork"));
    if (pid == 0) become_runtime(line, streams);
    ChildGuard guard(pid);
    const UniqueFd pidfd = open_pidfd(pid);
    if (!pidfd) return errno_error(concat("watch ", runtime.path, ": pidfd_open"));
    pollfd slot{pidfd.get(), POLLIN, 0};
    int ready = 0;
    while ((ready = ::poll(&slot, 1, kPatience)) < 0 && errno == EINTR) continue;
    if (ready == 0) return plain_error(concat(runtime.path, " took longer than ", kPatience / 1000, " seconds"));
    const ChildEnd end = TRY_IN(concat("wait for ", runtime.path), reap_held(pidfd.get()));
    guard.release();
    return exit_code_of(end.how);
}

}  // namespace pinfold
