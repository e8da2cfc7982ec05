// Signals that were typed at the caller's terminal.
#include "process/typed_signals.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/process.hpp"
#include "base/strings.hpp"

namespace pinfold {

bool came_from_terminal(const signalfd_siginfo& info) {
    const auto number = static_cast<int>(info.ssi_signo);
    return info.ssi_code == SI_KERNEL && (number == SIGINT || number == SIGQUIT || number == SIGHUP);
}

Result<bool> send_signal_to_group(int pidfd, int signal) {
    const Result<pid_t> leader = pid_of(pidfd);
    if (leader && ::kill(-*leader, signal) == 0) return true;
    return send_signal(pidfd, signal);
}

Result<bool> send_to_payload_group(int sandbox_init, int signal) {
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = SI_QUEUE;
    info.si_pid = ::getpid();
    info.si_uid = ::getuid();
    if (::syscall(SYS_pidfd_send_signal, sandbox_init, signal, &info, 0) == 0) return true;
    if (errno == ESRCH) return false;
    return errno_error(concat("send signal ", signal));
}

}  // namespace pinfold
