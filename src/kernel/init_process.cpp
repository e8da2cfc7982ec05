// A process that outlives the one that started it.
#include "kernel/init_process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"

namespace pinfold {

// Field 22 of /proc/PID/stat, counted after the program's name, which may hold anything.
Result<uint64_t> process_start_time(pid_t pid) {
    const Result<std::string> stat = read_file(concat("/proc/", pid, "/stat"));
    if (!stat && stat.error().code == ENOENT) TRY(require_proc());
    if (!stat && (stat.error().code == ENOENT || stat.error().code == ESRCH)) return 0;
    if (!stat) return stat.error();
    const std::vector<std::string_view> fields = split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
    const bool ended = fields[0] == "Z" || fields[0] == "X";
    return ended ? 0 : parse_number<uint64_t>(fields[19]).value_or(0);
}

Result<UniqueFd> open_process(pid_t pid, uint64_t started) {
    if (pid <= 0) return UniqueFd();
    UniqueFd pidfd = open_pidfd(pid);
    if (!pidfd && errno != ESRCH) return errno_error(concat("open process ", pid));
    // The pidfd holds the process; only now is it certain that the pid was not reused before.
    if (!pidfd || TRY(process_start_time(pid)) != started) return UniqueFd();
    return pidfd;
}

Result<pid_t> pid_of(int pidfd) {
    constexpr std::string_view kKey = "Pid:\t";
    const std::string info = TRY(read_file(concat("/proc/self/fdinfo/", pidfd)));
    const size_t start = info.find(kKey);
    const std::string_view number =
        start == info.npos ? "" : split(std::string_view(info).substr(start + kKey.size()), '\n')[0];
    const auto pid = parse_number<pid_t>(number);
    if (!pid || *pid <= 0) return plain_error("the process has ended");
    return *pid;
}

Result<bool> send_signal(int pidfd, int signal) {
    // By system call: glibc 2.36 declares its wrapper without C linkage.
    if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) == 0) return true;
    if (errno == ESRCH) return false;
    return errno_error(concat("send signal ", signal));
}

Result<void> await_end(int pidfd, std::chrono::seconds patience) {
    pollfd ended{pidfd, POLLIN, 0};
    if (::poll(&ended, 1, static_cast<int>(std::chrono::milliseconds(patience).count())) == 1) return {};
    return plain_error(concat("the first process did not end within ", patience.count(), " s of SIGKILL"))
        .with_hint(
            "it ends after all others of its namespace: one that ps calls defunct has to be reaped by its parent, or "
            "that has to end; one that waits for a device or a file server cannot be killed");
}

}  // namespace pinfold
