// Following pinfold and its children from call to call, until the fault has struck: then all of them are let go.
#include "trace.hpp"

#include <fcntl.h>
#include <grp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "harness.hpp"

namespace pinfold::faults {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOptions =
    PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
constexpr int kSyscallStop = SIGTRAP | 0x80;

[[noreturn]] void become(const TraceRequest& request, int gate) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const auto& [target, source] : request.spawn.fds) ::dup2(source, target);
    for (const std::string& entry : request.spawn.env) ::putenv(const_cast<char*>(entry.c_str()));
    if (request.spawn.uid) {
        const uid_t uid = *request.spawn.uid;
        if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 || ::setresuid(uid, uid, uid) != 0) {
            ::_exit(125);
        }
    }
    std::vector<char*> argv;
    for (const std::string& word : request.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    char end = 0;
    while (::read(gate, &end, 1) < 0) continue;  // until the tracer is there
    ::execv(argv[0], argv.data());
    ::_exit(125);
}

class Tracer {
public:
    explicit Tracer(const TraceRequest& request) : request_(request) {
        sigset_t child;
        ::sigemptyset(&child);
        ::sigaddset(&child, SIGCHLD);
        ::sigprocmask(SIG_BLOCK, &child, nullptr);
        struct stat own {};
        ::stat(request.argv.front().c_str(), &own);
        own_binary_ = own.st_ino;
        start();
    }

    Traced run() {
        const Clock::time_point deadline = Clock::now() + integration::patience();
        while (!ended_ || !tracees_.empty()) {
            int status = 0;
            const pid_t pid = ::waitpid(-1, &status, __WALL | WNOHANG);
            if (pid > 0) {
                handle(pid, status);
            } else if (!await_child(deadline)) {
                result_.hung = true;
                kill_all();
                break;
            }
        }
        return std::move(result_);
    }

private:
    struct Tracee {
        std::string name;
        int children = 0;
        std::map<long, int> counts;
    };

    void start() {
        std::array<int, 2> gate{};
        if (::pipe2(gate.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
        main_ = ::fork();
        if (main_ == 0) {
            ::close(gate[1]);
            become(request_, gate[0]);
        }
        if (request_.follow) seize(main_, "0");
        if (request_.init) {
            seize(*request_.init, "init");
            ::ptrace(PTRACE_INTERRUPT, *request_.init, 0, 0);
        }
        ::close(gate[0]);
        ::close(gate[1]);
    }

    void seize(pid_t pid, const char* name) {
        if (::ptrace(PTRACE_SEIZE, pid, 0, kOptions) != 0) throw std::runtime_error("PTRACE_SEIZE");
        tracees_[pid].name = name;
    }

    static bool await_child(Clock::time_point deadline) {
        const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
        if (left <= 0) return false;
        const timespec patience{left / 1'000'000'000, left % 1'000'000'000};
        sigset_t child;
        ::sigemptyset(&child);
        ::sigaddset(&child, SIGCHLD);
        return ::sigtimedwait(&child, nullptr, &patience) > 0 || errno == EINTR;
    }

    void kill_all() {
        tracees_.try_emplace(main_);
        for (const auto& [pid, tracee] : tracees_) ::kill(pid, SIGKILL);
        while (!ended_) {
            int status = 0;
            const pid_t pid = ::waitpid(-1, &status, __WALL);
            if (pid == main_ && !WIFSTOPPED(status)) ended_ = true;
        }
    }

    void handle(pid_t pid, int status) {
        if (!WIFSTOPPED(status)) {
            tracees_.erase(pid);
            if (pid != main_) return;
            ended_ = true;
            result_.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            let_all_go();
            return;
        }
        const auto found = tracees_.find(pid);
        if (found == tracees_.end()) hold(pid);
        else stopped(pid, found->second, WSTOPSIG(status), status >> 16);
    }

    // A child may stop before its parent tells of it. The parent that was killed meanwhile never does.
    void hold(pid_t pid) {
        if (leaving_) {
            ::ptrace(PTRACE_DETACH, pid, 0, 0);
            released_.insert(pid);
        } else {
            early_.insert(pid);
        }
    }

    void stopped(pid_t pid, Tracee& tracee, int signal, int event) {
        switch (event) {
            case 0: break;
            case PTRACE_EVENT_FORK:
            case PTRACE_EVENT_VFORK:
            case PTRACE_EVENT_CLONE: adopt(pid, tracee); return resume(pid, 0);
            // What pinfold starts is not pinfold.
            case PTRACE_EVENT_EXEC: return is_own(pid) ? resume(pid, 0) : release(pid, 0);
            default: return resume(pid, 0);
        }
        if (signal == kSyscallStop) at_call(pid, tracee);
        else resume(pid, signal);
    }

    bool is_own(pid_t pid) const {
        struct stat info {};
        return ::stat(("/proc/" + std::to_string(pid) + "/exe").c_str(), &info) == 0 && info.st_ino == own_binary_;
    }

    void adopt(pid_t parent, Tracee& tracee) {
        unsigned long message = 0;
        if (::ptrace(PTRACE_GETEVENTMSG, parent, 0, &message) != 0) return;
        const auto child = static_cast<pid_t>(message);
        if (released_.contains(child)) return;
        tracees_[child].name = tracee.name + "." + std::to_string(++tracee.children);
        if (early_.erase(child) > 0) resume(child, 0);
    }

    void at_call(pid_t pid, Tracee& tracee) {
        __ptrace_syscall_info info{};
        if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0) return resume(pid, 0);
        if (info.op == PTRACE_SYSCALL_INFO_EXIT && pid == struck_) return fail_call(pid);
        if (info.op != PTRACE_SYSCALL_INFO_ENTRY || leaving_) return resume(pid, 0);
        const auto number = static_cast<long>(info.entry.nr);
        const int occurrence = ++tracee.counts[number];
        result_.calls.push_back({tracee.name, number, occurrence});
        const Fault* fault = request_.fault;
        if (fault != nullptr && fault->at.number == number && fault->at.occurrence == occurrence &&
            fault->at.process == tracee.name) {
            strike(pid, fault->error);
        } else {
            resume(pid, 0);
        }
    }

    void strike(pid_t pid, int error) {
        result_.struck = true;
        if (error == kKilled) {
            ::kill(pid, SIGKILL);
        } else {
            prevent(pid);
            struck_ = pid;
            ::ptrace(PTRACE_SYSCALL, pid, 0, 0);
        }
        let_all_go();
    }

    static void prevent(pid_t pid) {
        user_regs_struct registers{};
        ::ptrace(PTRACE_GETREGS, pid, 0, &registers);
        if (registers.orig_rax == SYS_close) return;  // Linux closes the descriptor whatever it then answers
        registers.orig_rax = static_cast<unsigned long long>(-1);
        ::ptrace(PTRACE_SETREGS, pid, 0, &registers);
    }

    // A seccomp filter may have had its own answer to a call without a number.
    void fail_call(pid_t pid) {
        user_regs_struct registers{};
        ::ptrace(PTRACE_GETREGS, pid, 0, &registers);
        registers.rax = static_cast<unsigned long long>(-request_.fault->error);
        ::ptrace(PTRACE_SETREGS, pid, 0, &registers);
        release(pid, 0);
    }

    void resume(pid_t pid, int signal) {
        if (leaving_ && pid != struck_) release(pid, signal);
        else ::ptrace(PTRACE_SYSCALL, pid, 0, signal);
    }

    void release(pid_t pid, int signal) {
        ::ptrace(PTRACE_DETACH, pid, 0, signal);
        tracees_.erase(pid);
        released_.insert(pid);
    }

    // Each is released at its next stop, which is here at once.
    void let_all_go() {
        leaving_ = true;
        for (const auto& [pid, tracee] : tracees_) {
            if (pid != struck_) ::ptrace(PTRACE_INTERRUPT, pid, 0, 0);
        }
        for (const pid_t pid : early_) hold(pid);
        early_.clear();
    }

    const TraceRequest& request_;
    ino_t own_binary_ = 0;
    pid_t main_ = -1;
    bool ended_ = false;
    bool leaving_ = false;
    pid_t struck_ = -1;  // whose call fails, until it has
    std::map<pid_t, Tracee> tracees_;
    std::set<pid_t> early_;     // stopped, their parents not heard of
    std::set<pid_t> released_;  // not ours any more
    Traced result_;
};

}  // namespace

Traced trace(const TraceRequest& request) { return Tracer(request).run(); }

std::string call_name(long number) {
    char* name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number));
    const std::string text = name != nullptr ? name : std::to_string(number);
    std::free(name);
    return text;
}

}  // namespace pinfold::faults
