// Ways out: other processes, above all the first one, which is pinfold's own in a sandbox.
#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "escape.hpp"
#include "text.hpp"

namespace probe {

namespace {

// Where it is the payload itself, there is nobody to attack.
std::function<long()> on_first(const std::function<long()>& run) {
    return [=] { return ::getpid() == 1 ? kAbsent : run(); };
}

std::function<long()> opening(const std::string& path, int flags) {
    return on_first([=]() -> long { return ::open(path.c_str(), flags | O_CLOEXEC); });
}

long seize() { return ::ptrace(PTRACE_SEIZE, 1, nullptr, nullptr); }

long read_memory() {
    std::array<char, 8> here{};
    const iovec local{here.data(), here.size()};
    const iovec remote{reinterpret_cast<void*>(0x400000), here.size()};
    return ::process_vm_readv(1, &local, 1, &remote, 1, 0);
}

long write_memory() {
    std::array<char, 8> here{};
    const iovec local{here.data(), 0};
    const iovec remote{reinterpret_cast<void*>(0x400000), 0};
    return ::process_vm_writev(1, &local, 1, &remote, 1, 0);
}

long take_descriptor() {
    const long first = ::syscall(SYS_pidfd_open, 1, 0);
    return first < 0 ? -1 : ::syscall(SYS_pidfd_getfd, first, 0, 0);
}

// The names of such links are seen by whoever has the same user; where they lead to must not be.
long links_below(const char* directory) {
    const std::unique_ptr<DIR, int (*)(DIR*)> links(::opendir(directory), ::closedir);
    if (links == nullptr) return -1;
    while (const dirent* entry = ::readdir(links.get())) {
        if (read_link(std::string(directory) + "/" + entry->d_name)) return 0;
    }
    return confined();
}

long limits_of_first() {
    rlimit limit{};
    return ::prlimit(1, RLIMIT_CORE, nullptr, &limit) == 0 ? ::prlimit(1, RLIMIT_CORE, &limit, nullptr) : -1;
}

bool same_root(const std::string& process, const struct stat& own) {
    struct stat found {};
    if (::stat(("/proc/" + process + "/root/.").c_str(), &found) != 0) return true;  // not to be reached at all
    return found.st_dev == own.st_dev && found.st_ino == own.st_ino;
}

// The way through a process that was left in the host's root.
long other_roots() {
    struct stat own {};
    const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
    if (processes == nullptr || ::stat("/", &own) != 0) return -1;
    while (const dirent* entry = ::readdir(processes.get())) {
        if (std::strtol(entry->d_name, nullptr, 10) > 0 && !same_root(entry->d_name, own)) return 0;
    }
    return confined();
}

// Threads of the kernel are seen from the machine's own namespace alone.
long threads_of_kernel() {
    const std::optional<std::string> name = read_file("/proc/2/comm");
    return name && name->starts_with("kthreadd") ? 0 : confined();
}

// So that others are killed first when memory runs out.
long protect_from_oom() {
    const int file = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    return file < 0 ? -1 : ::write(file, "-1000", 5);
}

}  // namespace

Attempts process_attempts() {
    return {
        {"ptrace of the first process", on_first(seize)},
        {"the first process's memory, read", on_first(read_memory)},
        {"the first process's memory, written", on_first(write_memory)},
        {"the first process's descriptors", on_first(take_descriptor)},
        {"kcmp with the first process", on_first([] { return ::syscall(SYS_kcmp, 1, ::getpid(), KCMP_FILES, 0, 0); })},
        {"the first process's limits", on_first(limits_of_first)},
        {"/proc/1/mem", opening("/proc/1/mem", O_RDWR)},
        {"/proc/1/root", opening("/proc/1/root", O_RDONLY)},
        {"/proc/1/cwd", opening("/proc/1/cwd", O_RDONLY)},
        {"/proc/1/fd", on_first([] { return links_below("/proc/1/fd"); }), {EXDEV}},
        {"/proc/1/exe for writing", opening("/proc/1/exe", O_WRONLY)},
        {"/proc/1/map_files", on_first([] { return links_below("/proc/1/map_files"); }), {EXDEV}},
        {"roots of other processes", other_roots, {EXDEV}},
        {"threads of the kernel", threads_of_kernel, {EXDEV}},
        {"an oom_score_adj below all others", [] { return in_child(protect_from_oom); }},
    };
}

}  // namespace probe
