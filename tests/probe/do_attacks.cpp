// Reaching for other processes while they come and go: what a container does that waits for a runtime to join it.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
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

Object overwrite_command(const Arguments& /*arguments*/) {
    return at_each_process(
        [](const std::string& proc, pid_t /*pid*/, Catch& caught) { overwrite_program(proc, caught); });
}

}  // namespace probe
