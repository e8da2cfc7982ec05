// Child processes, and what this one has from its start.
#include "base/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

// Programs that help take settings from variables (PS_FORMAT, MKE2FS_CONFIG), and may run with rights that whoever has
// set them has not.
static std::vector<std::string> helpers_environment() {
    std::vector<std::string> environment;
    for (const char* name : {"PATH", "LANG", "LC_ALL", "TERM", "COLUMNS"}) {
        if (const char* value = std::getenv(name)) environment.push_back(concat(name, '=', value));
    }
    return environment;
}

Result<pid_t> spawn(const std::vector<std::string>& words, int output) {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
        if (output >= 0) ::posix_spawn_file_actions_adddup2(&actions, output, fd);
    }
    pid_t pid = 0;
    const std::vector<std::string> environment = helpers_environment();
    const int failed =
        ::posix_spawnp(&pid, words[0].c_str(), &actions, nullptr, pointers(words).data(), pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return errno_error(failed, concat("start ", words[0]));
    return pid;
}

UniqueFd open_pidfd(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

int reap(pid_t pid) {
    const UniqueFd pidfd = open_pidfd(pid);
    if (const Result<ChildEnd> end = pidfd ? reap_held(pidfd.get()) : Error{}) return exit_code_of(end->how);
    siginfo_t end{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED) != 0) {
        if (errno != EINTR) return 0;
    }
    return exit_code_of(end);
}

namespace {

// Fields of /proc/PID/stat, by their numbers in proc(5): how it ended, and the times that it took. To whom the kernel
// does not tell that it says 0, which is no exit code to be believed; but `io` it refuses then, by the same rule.
Result<ChildEnd> end_of_zombie(int pidfd) {
    constexpr size_t kFirst = 3, kUser = 14, kSystem = 15, kExitCode = 52;
    const pid_t pid = TRY(pid_of(pidfd));
    if (!read_file(concat("/proc/", pid, "/io")))
        return plain_error("somebody in the container traces the process, so that it is not known how it ended");
    const std::string stat = TRY(read_file(concat("/proc/", pid, "/stat")));
    const std::vector<std::string_view> fields = split(std::string_view(stat).substr(stat.rfind(')') + 2), ' ');
    const auto number = [&](size_t field) {
        return field - kFirst < fields.size()
                   ? parse_number<int64_t>(split(fields[field - kFirst], '\n')[0]).value_or(0)
                   : 0;
    };
    const auto time = [&](size_t field) {
        const int64_t per_second = ::sysconf(_SC_CLK_TCK), ticks = number(field);
        return timeval{ticks / per_second, ticks % per_second * 1'000'000 / per_second};
    };
    const int status = static_cast<int>(number(kExitCode));
    ChildEnd end{};
    end.how.si_code = WIFEXITED(status) ? CLD_EXITED : CLD_KILLED;
    end.how.si_status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    end.usage.ru_utime = time(kUser);
    end.usage.ru_stime = time(kSystem);
    return end;
}

// By system call: the C library's has no room for the usage. Never a wait by it. False: it is not ours to reap yet.
Result<bool> try_to_reap(int pidfd, ChildEnd& end) {
    while (::syscall(SYS_waitid, P_PIDFD, pidfd, &end.how, WEXITED | WNOHANG, &end.usage) != 0) {
        if (errno != EINTR) return errno_error("waitid");
    }
    return end.how.si_pid != 0;
}

// We get SIGCHLD once the tracer has waited for it, or has ended.
Result<bool> reap_after_tracer(int pidfd, ChildEnd& end) {
    constexpr int64_t kPatience = 1'000'000'000;
    sigset_t child;
    sigset_t before;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &child, &before);
    const int64_t give_up_at = monotonic_ns() + kPatience;
    Result<bool> reaped = try_to_reap(pidfd, end);  // it may have been before we listened
    for (int64_t left = kPatience; reaped && !*reaped && left > 0; left = give_up_at - monotonic_ns()) {
        const timespec rest{left / 1'000'000'000, left % 1'000'000'000};
        if (::sigtimedwait(&child, nullptr, &rest) < 0 && errno == EAGAIN) break;
        reaped = try_to_reap(pidfd, end);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return reaped;
}

}  // namespace

// One that has ended, and that somebody in its container traces, is the tracer's to wait for, who may never do so. Then
// it is left to whoever reaps after us. Who only is slow is waited for: some callers reap nobody that they have not
// started, and what is not reaped keeps its container from ending.
Result<ChildEnd> reap_held(int pidfd) {
    pollfd ended{pidfd, POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0) {
        if (errno != EINTR) return errno_error("poll");
    }
    ChildEnd end{};
    if (TRY(try_to_reap(pidfd, end)) || TRY(reap_after_tracer(pidfd, end))) return end;
    return end_of_zombie(pidfd);
}

int exit_code_of(const siginfo_t& end) { return end.si_code == CLD_EXITED ? end.si_status : 128 + end.si_status; }

static bool output_was_closed = false;

bool standard_output_was_closed() { return output_was_closed; }

// The kernel gives the lowest number that is free, and those below are not, once they were filled.
Result<void> fill_standard_streams() {
    for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
        const int opened = ::open("/dev/null", O_RDWR);
        if (opened < 0) return errno_error(concat("descriptor ", number, " is closed: open /dev/null in its place"));
        output_was_closed = output_was_closed || number == STDOUT_FILENO;
        if (opened == number) continue;
        ::close(opened);  // another thread of a library's caller has taken the number meanwhile
    }
    return {};
}

Result<UniqueFd> above_standard_streams(UniqueFd fd) {
    if (fd.get() > STDERR_FILENO) return fd;
    UniqueFd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!moved) return errno_error("move a descriptor");
    return moved;
}

namespace {

constexpr const char* kOwnBinary = "/proc/self/exe";

bool is_same_file(const char* one, const char* other) {
    struct stat a {};
    struct stat b {};
    return ::stat(one, &a) == 0 && ::stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

std::string own_path() {
    const std::string path = link_target(kOwnBinary);
    if (is_same_file(path.c_str(), kOwnBinary)) return path;
    const Result<std::string> arguments = read_file("/proc/self/cmdline");
    return arguments ? arguments->substr(0, arguments->find('\0')) : std::string();
}

ChildGuard::ChildGuard(pid_t pid) : pid_(pid), owner_(::getpid()) {}

ChildGuard::ChildGuard(ChildGuard&& other) noexcept
    : pid_(other.pid_), owner_(other.owner_), armed_(std::exchange(other.armed_, false)) {}

ChildGuard::~ChildGuard() {
    if (!armed_ || ::getpid() != owner_) return;
    // Not reaped yet, so the pid is still ours: no other process can have it.
    ::kill(pid_, SIGKILL);
    reap(pid_);
}

namespace {

// What /proc/PID/stat says, after the program's name, which may hold anything: fields 3 and 22.
struct ProcessStat {
    char state = 0;
    uint64_t started = 0;
};

ProcessStat parse_stat(std::string_view stat) {
    const std::vector<std::string_view> fields = split(stat.substr(stat.rfind(')') + 2), ' ');
    return {fields[0][0], parse_number<uint64_t>(fields[19]).value_or(0)};
}

}  // namespace

Result<uint64_t> process_start_time(pid_t pid) {
    const Result<std::string> stat = read_file(concat("/proc/", pid, "/stat"));
    if (!stat && stat.error().code == ENOENT) TRY(require_proc());
    if (!stat && (stat.error().code == ENOENT || stat.error().code == ESRCH)) return 0;
    if (!stat) return stat.error();
    return parse_stat(*stat).started;
}

Result<bool> is_alive(pid_t pid, uint64_t started) {
    constexpr size_t kLongestStat = 1024;  // 52 numbers and a name
    char text[kLongestStat];
    const UniqueFd file(::open(concat("/proc/", pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t length = file ? ::read(file.get(), text, sizeof text) : -1;
    if (pid > 0 && length > 0) {
        const ProcessStat stat = parse_stat({text, size_t(length)});
        if (stat.state != 'Z' && stat.state != 'X') return stat.started == started;
    }
    // None, or its first thread has ended: others may live.
    return bool(TRY(open_process(pid, started)));
}

Result<UniqueFd> open_process(pid_t pid, uint64_t started) {
    if (pid <= 0) return UniqueFd();
    UniqueFd pidfd = open_pidfd(pid);
    // EINVAL, and ENOENT since Linux 6.15: the number is that of another process's thread by now.
    const bool is_gone = !pidfd && (errno == ESRCH || errno == EINVAL || errno == ENOENT);
    if (!pidfd && !is_gone) return errno_error(concat("open process ", pid));
    // The pidfd holds the process; only now is it certain that the pid was not reused before.
    if (is_gone || TRY(process_start_time(pid)) != started || has_ended(pidfd.get())) return UniqueFd();
    return pidfd;
}

bool has_ended(int pidfd) {
    pollfd end{pidfd, POLLIN, 0};
    int ready = 0;
    do ready = ::poll(&end, 1, 0);
    while (ready < 0 && errno == EINTR);
    return ready == 1;
}

std::vector<std::string> threads_of(pid_t pid) {
    const std::string path = concat("/proc/", pid, "/task/");
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    std::vector<std::string> threads;
    while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
        if (entry->d_name[0] != '.') threads.push_back(path + entry->d_name);
    }
    return threads;
}

// Each thread may hand over to a new one and end before it is asked: but not so often.
bool ask_threads(pid_t pid, const std::function<bool(const std::string& thread)>& ask) {
    constexpr int kTries = 100;
    if (ask(concat("/proc/", pid))) return true;
    for (int tries = 0; tries < kTries; ++tries) {
        const std::vector<std::string> threads = threads_of(pid);
        for (const std::string& thread : threads) {
            if (ask(thread)) return true;
        }
        if (threads.size() < 2) return false;  // there is but the first one, which has ended
    }
    return false;
}

Result<void> require_first_thread(pid_t pid) {
    const auto has_namespaces = [](const std::string& thread) {
        return !link_target(thread + "/ns/mnt").empty() || (errno != ENOENT && errno != ESRCH);
    };
    if (has_namespaces(concat("/proc/", pid))) return {};
    if (!ask_threads(pid, has_namespaces)) return plain_error("container not running: its first process has ended");
    return plain_error("the first process lives on without its first thread, by which alone it can be joined")
        .with_hint("its processes can be listed and ended: pinfold ps, kill, delete --force");
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

namespace {

uint32_t copy_text(char* to, std::string_view text) {
    const size_t length = std::min(text.size(), ErrorPacket::kMaxText);
    std::memcpy(to, text.data(), length);
    return static_cast<uint32_t>(length);
}

}  // namespace

void ErrorPacket::hold(const Error& error) noexcept {
    code = error.code;
    message_length = copy_text(text, error.message);
    hint_length = copy_text(text + message_length, error.hint);
}

std::optional<Error> unpack_error(std::string_view bytes) {
    constexpr size_t kHeader = offsetof(ErrorPacket, text);
    ErrorPacket packet;
    if (bytes.size() < kHeader) return std::nullopt;
    std::memcpy(static_cast<void*>(&packet), bytes.data(), kHeader);
    const std::string_view text = bytes.substr(kHeader);
    if (text.size() != size_t{packet.message_length} + packet.hint_length) return std::nullopt;
    return Error{packet.code, std::string(text.substr(0, packet.message_length)),
                 std::string(text.substr(packet.message_length))};
}

}  // namespace pinfold
