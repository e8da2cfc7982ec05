// Reaching for other processes while they come and go: what a container does that waits for a runtime to join it.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <set>

#include "commands.hpp"

namespace probe {

namespace {

struct Catch {
    long met = 0;  // looks at a process that is another program
    std::set<std::string> reached;
};

class Descriptor {
public:
    Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK)) {}
    explicit Descriptor(long fd) : fd_(static_cast<int>(fd)) {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_;
};

// Until it has become the payload, which is this very program.
bool is_stranger(const std::string& proc) {
    const auto name = read_file(proc + "/comm");
    return name && *name != "probe\n";
}

std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> names;
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) return names;
    while (const dirent* entry = ::readdir(directory)) {
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') names.emplace_back(entry->d_name);
    }
    ::closedir(directory);
    return names;
}

void reach_descriptors(const std::string& proc, Catch& caught) {
    const std::string directory = proc + "/fd/";
    for (const std::string& fd : names_in(directory)) {
        if (std::stoi(fd) > 2 && Descriptor(directory + fd, O_PATH) && is_stranger(proc)) caught.reached.insert("fd");
    }
}

void take_descriptors(const std::string& proc, pid_t pid, Catch& caught) {
    const Descriptor process(::syscall(SYS_pidfd_open, pid, 0));
    for (int fd = 3; fd < 16; ++fd) {
        if (Descriptor(::syscall(SYS_pidfd_getfd, process.get(), fd, 0)) && is_stranger(proc))
            caught.reached.insert("pidfd_getfd");
    }
}

void reach_memory(const std::string& proc, Catch& caught) {
    for (const char* file : {"/mem", "/environ", "/auxv"}) {
        if (Descriptor(proc + file, O_RDONLY) && is_stranger(proc)) caught.reached.insert(file);
    }
}

void trace(const std::string& proc, pid_t pid, Catch& caught) {
    if (::ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) return;
    if (is_stranger(proc)) caught.reached.insert("ptrace");
    ::ptrace(PTRACE_INTERRUPT, pid, 0, 0);
    ::waitpid(pid, nullptr, __WALL);
    ::ptrace(PTRACE_DETACH, pid, 0, 0);
}

// The file of another program, by the link that leads to it: first held, then opened for writing.
void overwrite_program(const std::string& proc, Catch& caught) {
    const Descriptor held(proc + "/exe", O_PATH);
    struct stat own {
    }, other{};
    if (!held || ::stat("/proc/self/exe", &own) != 0 || ::fstat(held.get(), &other) != 0) return;
    if (own.st_ino == other.st_ino && own.st_dev == other.st_dev) return;
    ++caught.met;
    for (int tries = 0; tries < 1000; ++tries) {
        const Descriptor file("/proc/self/fd/" + std::to_string(held.get()), O_WRONLY);
        if (file && ::write(file.get(), "#!/evil\n", 8) == 8) caught.reached.insert("program");
        if (file || errno != ETXTBSY) return;
    }
}

// What a process on its way to the payload may still have of the host's, for one who has the right to look at all of
// it: a file, a word of the caller's environment, the root by its numbers, namespaces by their names.
class Reach {
public:
    explicit Reach(const Arguments& arguments)
        : secret_(arguments[0]),
          word_(arguments[1]),
          root_(arguments[2]),
          namespaces_(arguments[3]),
          rights_(rights_of("/proc/self")) {}

    void at(const std::string& proc, Catch& caught) const {
        if (!is_stranger(proc)) return;
        ++caught.met;
        look_from(proc + "/root", caught, "root");
        look_from(proc + "/cwd", caught, "cwd");
        for (const std::string& fd : names_in(proc + "/fd")) look_through(proc, fd, caught);
        const std::string maps = proc + "/map_files/";
        for (const std::string& part : names_in(maps)) write_to(maps + part, caught);
        for (const char* file : {"/environ", "/cmdline"}) {
            const auto text = read_file(proc + file);
            if (text && text->find(word_) != std::string::npos) caught.reached.insert(file);
        }
        for (const char* name : {"mnt", "net", "ipc", "uts"}) look_at_namespace(proc, name, caught);
        constexpr unsigned long long kWakeAlarm = 1ULL << 35;  // the first process of a sandbox has it, never in effect
        if ((rights_of(proc) & ~rights_ & ~kWakeAlarm) != 0 && is_stranger(proc)) caught.reached.insert("capabilities");
    }

private:
    // Permitted ones.
    static unsigned long long rights_of(const std::string& proc) {
        const std::string status = read_file(proc + "/status").value_or("");
        const size_t at = status.find("CapPrm:\t");
        return at == std::string::npos ? 0 : std::stoull(status.substr(at + 8, 16), nullptr, 16);
    }

    void look_from(const std::string& path, Catch& caught, const char* name) const {
        const Descriptor place(path, O_PATH | O_DIRECTORY);
        if (place) climb(place.get(), caught, name);
    }

    // From anywhere on the host, enough steps lead to its root.
    void climb(int place, Catch& caught, const std::string& name) const {
        const std::string up = "../../../../../../../../../../../../../../../..";
        struct stat top {};
        if (::fstatat(place, up.c_str(), &top, 0) == 0 &&
            std::to_string(top.st_dev) + ":" + std::to_string(top.st_ino) == root_)
            caught.reached.insert(name);
        const int secret = ::openat(place, (up + secret_).c_str(), O_RDONLY | O_CLOEXEC);
        if (secret < 0) return;
        caught.reached.insert(name + ": secret");
        ::close(secret);
    }

    // Streams and sockets are what it may have.
    void look_through(const std::string& proc, const std::string& fd, Catch& caught) const {
        const Descriptor held(proc + "/fd/" + fd, O_PATH);
        struct stat info {};
        if (!held || std::stoi(fd) <= 2 || ::fstat(held.get(), &info) != 0 || !is_stranger(proc)) return;
        if (S_ISDIR(info.st_mode)) climb(held.get(), caught, "fd");
        if (S_ISREG(info.st_mode) && info.st_nlink == 0)
            return;  // in memory: what a hook reads of its container's state
        if (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode) || S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode))
            caught.reached.insert("fd");
    }

    static void write_to(const std::string& path, Catch& caught) {
        if (Descriptor(path, O_WRONLY)) caught.reached.insert("map_files");
    }

    void look_at_namespace(const std::string& proc, const std::string& name, Catch& caught) const {
        char target[64] = {};
        if (::readlink((proc + "/ns/" + name).c_str(), target, sizeof target - 1) <= 0) return;
        if (namespaces_.find(target) != std::string::npos) caught.reached.insert("namespace " + name);
    }

    std::string secret_, word_, root_, namespaces_;
    unsigned long long rights_;
};

bool is_told_to_end() {
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGTERM) == 1;
}

// At each other process, until SIGTERM comes.
template <class Reach>
Object at_each_process(Reach reach) {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    std::printf("READY\n");
    std::fflush(stdout);
    Catch caught;
    while (!is_told_to_end()) {
        for (const std::string& name : names_in("/proc")) {
            if (const pid_t pid = std::stoi(name); pid != ::getpid()) reach("/proc/" + name, pid, caught);
        }
        while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
    }
    List reached;
    for (const std::string& one : caught.reached) reached.add(one);
    return success().add("met", caught.met).add("reached", reached);
}

}  // namespace

Object pry_command(const Arguments& /*arguments*/) {
    return at_each_process([](const std::string& proc, pid_t pid, Catch& caught) {
        if (!is_stranger(proc)) return;
        ++caught.met;
        reach_descriptors(proc, caught);
        take_descriptors(proc, pid, caught);
        reach_memory(proc, caught);
        trace(proc, pid, caught);
    });
}

Object reach_command(const Arguments& arguments) {
    const Reach reach(arguments);
    return at_each_process([&](const std::string& proc, pid_t /*pid*/, Catch& caught) { reach.at(proc, caught); });
}

// Once, at the first process; its being traced is a reach, too, if that has more rights.
Object reach_first_command(const Arguments& arguments) {
    const Reach reach(arguments);
    Catch caught;
    reach.at("/proc/1", caught);
    if (caught.reached.contains("capabilities")) trace("/proc/1", 1, caught);
    List reached;
    for (const std::string& one : caught.reached) reached.add(one);
    return success().add("met", caught.met).add("reached", reached);
}

// As the first process: all but itself, as long as they are still on their way to a program. Who has become one may go
// on: it would have no signal that is sent to it.
Object stop_others_command(const Arguments& /*arguments*/) {
    std::printf("READY\n");
    std::fflush(stdout);
    for (;;) {
        ::kill(-1, SIGSTOP);
        for (const std::string& name : names_in("/proc")) {
            if (!is_stranger("/proc/" + name)) ::kill(std::stoi(name), SIGCONT);
        }
    }
}

// As the first process: who is traced, and has ended, is nobody else's to wait for until its tracer has done so.
Object trace_others_command(const Arguments& /*arguments*/) {
    std::printf("READY\n");
    std::fflush(stdout);
    for (;;) {
        for (const std::string& name : names_in("/proc")) {
            if (const pid_t pid = std::stoi(name); pid != ::getpid()) ::ptrace(PTRACE_SEIZE, pid, 0, 0);
        }
    }
}

// As the first process: waits for whom it traces, but only a while after that has ended.
Object trace_slowly_command(const Arguments& /*arguments*/) {
    return at_each_process([](const std::string& /*proc*/, pid_t pid, Catch& caught) {
        const Descriptor process(::syscall(SYS_pidfd_open, pid, 0));
        if (!process || ::ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) return;
        ++caught.met;
        pollfd ended{process.get(), POLLIN, 0};
        ::poll(&ended, 1, -1);
        ::poll(nullptr, 0, 300);
        ::waitpid(pid, nullptr, __WALL);
    });
}

// In the place of each process that shows up and has a socket of packets: one packet that begins with that number and
// is otherwise of zeros. Then that process is killed.
Object speak_for_others_command(const Arguments& arguments) {
    char packet[256] = {static_cast<char>(std::stoi(arguments[0]))};
    return at_each_process([&](const std::string& proc, pid_t pid, Catch& caught) {
        if (pid == 1 || !is_stranger(proc)) return;
        const Descriptor process(::syscall(SYS_pidfd_open, pid, 0));
        for (int number = 3; number < 16; ++number) {
            const Descriptor taken(::syscall(SYS_pidfd_getfd, process.get(), number, 0));
            int type = 0;
            socklen_t size = sizeof type;
            if (::getsockopt(taken.get(), SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET) continue;
            ::kill(pid, SIGSTOP);
            if (::send(taken.get(), packet, sizeof packet, MSG_NOSIGNAL) == sizeof packet) ++caught.met;
            ::kill(pid, SIGKILL);
            return;
        }
    });
}

// Of each process that shows up: its socket of packets, which is kept.
Object hold_channels_command(const Arguments& /*arguments*/) {
    return at_each_process([&](const std::string& proc, pid_t pid, Catch& caught) {
        if (pid == 1 || !is_stranger(proc)) return;
        const Descriptor process(::syscall(SYS_pidfd_open, pid, 0));
        for (int number = 3; number < 16; ++number) {
            const long taken = ::syscall(SYS_pidfd_getfd, process.get(), number, 0);
            int type = 0;
            socklen_t size = sizeof type;
            const bool is_it =
                ::getsockopt(static_cast<int>(taken), SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
            if (is_it) ++caught.met;
            else ::close(static_cast<int>(taken));
            if (is_it) return;
        }
    });
}

Object overwrite_command(const Arguments& /*arguments*/) {
    return at_each_process(
        [](const std::string& proc, pid_t /*pid*/, Catch& caught) { overwrite_program(proc, caught); });
}

}  // namespace probe
