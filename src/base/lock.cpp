// Locks of open files, with a wait that ends.
#include "base/lock.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <string>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

// How /proc/locks names a file.
std::string name_in_locks(const struct stat& info) {
    char name[64];
    std::snprintf(name, sizeof name, "%02x:%02x:%llu", major(info.st_dev), minor(info.st_dev),
                  static_cast<unsigned long long>(info.st_ino));
    return name;
}

// The lock may outlive who took it, in a child that has the same open file.
std::string describe_process(std::string_view pid) {
    const Result<std::string> name = read_file(concat("/proc/", pid, "/comm"));
    if (!name) return concat("a child of process ", pid, ", which has ended");
    return concat("process ", pid, " (", quoted(std::string_view(*name).substr(0, name->find('\n'))), ")");
}

// "3: FLOCK  ADVISORY  WRITE 4711 00:2a:1234 0 EOF"; who waits has an arrow before FLOCK.
std::string holder_of(int fd) {
    struct stat info {};
    const Result<std::string> locks = read_file("/proc/locks");
    if (!locks || ::fstat(fd, &info) != 0) return "another process";
    const std::string file = name_in_locks(info);
    for (const std::string_view line : split(*locks, '\n')) {
        std::vector<std::string_view> words = split(line, ' ');
        std::erase(words, std::string_view());
        if (words.size() > 5 && words[1] == "FLOCK" && words[5] == file) return describe_process(words[4]);
    }
    return "a process that cannot be seen from here";
}

void pause_for(std::chrono::nanoseconds time) {
    const timespec rest{time_t(time.count() / 1'000'000'000), time.count() % 1'000'000'000};
    ::nanosleep(&rest, nullptr);
}

}  // namespace

// Nothing tells that a lock is free but the lock itself, and only a signal ends the wait for it. Signals may be
// blocked or ignored, and their handlers belong to the whole process, so the lock is tried again and again: after a
// millisecond at first, twenty times a second in the end.
Result<void> lock_file(int fd, int kind, std::string_view name, std::chrono::milliseconds patience) {
    constexpr std::chrono::nanoseconds kFirstPause = std::chrono::milliseconds(1);
    constexpr std::chrono::nanoseconds kLongestPause = std::chrono::milliseconds(50);
    const int64_t end = monotonic_ns() + std::chrono::nanoseconds(patience).count();
    for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
        const int64_t now = monotonic_ns();  // before the try: who was stopped for long still gets one
        if (::flock(fd, kind | LOCK_NB) == 0) return {};
        if (errno != EWOULDBLOCK && errno != EINTR) return errno_error(concat("lock ", name));
        if (now >= end) break;
        pause_for(std::min(pause, std::chrono::nanoseconds(end - now)));
    }
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(patience).count();
    return Error{EWOULDBLOCK, concat(name, " is still held after ", seconds, " s, by ", holder_of(fd)), {}};
}

}  // namespace pinfold
