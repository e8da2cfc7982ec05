// Tells a recorder what a job's processes do.
#include "sandbox/tracer.hpp"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <vector>

namespace pinfold {

namespace {

constexpr auto kOptions =
    PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;

void record_call(pid_t pid, Recorder& recorder) {
    __ptrace_syscall_info info{};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0) return;  // it was killed
    if (info.op != PTRACE_SYSCALL_INFO_SECCOMP) return;
    seccomp_data call{};
    call.nr = static_cast<int>(info.seccomp.nr);
    call.arch = info.arch;
    std::ranges::copy(info.seccomp.args, call.args);
    recorder.record(call);
}

bool stops_a_process(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// Calls that fail are for processes that were killed meanwhile: their end is the next that is heard of them.
void go_on(pid_t pid, int status, Recorder& recorder) {
    const int event = status >> 16;
    const int signal = WSTOPSIG(status);
    if (event == PTRACE_EVENT_SECCOMP) record_call(pid, recorder);
    // A process that was told to stop is to stay so until it is told otherwise.
    const bool is_stopped = event == PTRACE_EVENT_STOP && stops_a_process(signal);
    if (is_stopped) ::ptrace(PTRACE_LISTEN, pid, nullptr, nullptr);
    else ::ptrace(PTRACE_CONT, pid, nullptr, event == 0 ? signal : 0);
}

struct Stop {
    pid_t pid;
    int status;
};

// Everything that waits for us; blocks until something does. Empty when there is nobody left to follow.
// Children of other threads, such as the sandbox's init, are none of ours.
std::vector<Stop> await_stops() {
    std::vector<Stop> stops;
    for (int flags = __WALL | __WNOTHREAD;;) {
        int status = 0;
        const pid_t pid = ::waitpid(-1, &status, flags);
        if (pid < 0 && errno == EINTR) continue;
        if (pid <= 0) return stops;
        stops.push_back({pid, status});
        flags |= WNOHANG;
    }
}

// All that have stopped go on before the next are asked for: the kernel names the youngest first, and one that makes
// call after call would keep the others waiting for ever.
void follow_all(Recorder& recorder) {
    for (std::vector<Stop> stops = await_stops(); !stops.empty(); stops = await_stops()) {
        for (const Stop& stop : stops) {
            if (WIFSTOPPED(stop.status)) go_on(stop.pid, stop.status, recorder);
        }
    }
}

}  // namespace

Result<Tracer> Tracer::start(pid_t pid, Recorder& recorder) {
    std::promise<int> seized;
    std::future<int> failure = seized.get_future();
    Tracer tracer(std::thread([pid, &recorder, seized = std::move(seized)]() mutable {
        const bool is_ours = ::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) == 0;
        seized.set_value(is_ours ? 0 : errno);
        if (is_ours) follow_all(recorder);
    }));
    if (const int code = failure.get(); code != 0) {
        return errno_error(code, "trace the program: ptrace")
            .with_hint("sysctl kernel.yama.ptrace_scope may forbid it");
    }
    return tracer;
}

Tracer::~Tracer() {
    if (thread_.joinable()) thread_.join();
}

}  // namespace pinfold
