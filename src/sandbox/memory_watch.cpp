// What the processes of a sandbox have mapped.
#include "sandbox/memory_watch.hpp"

#include <dirent.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/usage.hpp"

namespace pinfold {

namespace {

using namespace std::chrono_literals;

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

// Nothing of a process that has ended meanwhile.
std::string text_of(const std::string& path) {
    Result<std::string> text = read_file(path);
    return text ? std::move(text).value() : std::string();
}

std::vector<std::string> threads_of(pid_t pid) {
    const std::string path = concat("/proc/", pid, "/task/");
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
    std::vector<std::string> threads;
    while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
        if (entry->d_name[0] != '.') threads.push_back(path + entry->d_name);
    }
    return threads;
}

// The first process of the sandbox takes in those whose parents have ended, so all of them descend from it.
std::vector<pid_t> descendants_of(pid_t first) {
    std::vector<pid_t> found = {first};
    for (size_t next = 0; next < found.size(); ++next) {
        for (const std::string& thread : threads_of(found[next])) {
            const std::string children = text_of(thread + "/children");
            for (const std::string_view word : split(children, ' ')) {
                if (const auto pid = parse_number<pid_t>(word)) found.push_back(*pid);
            }
        }
    }
    found.erase(found.begin());
    return found;
}

// The sum of the lines with these names, which are in kilobytes; nothing where there is not one of them.
std::optional<uint64_t> sum_of(std::string_view text, std::initializer_list<std::string_view> names) {
    std::optional<uint64_t> sum;
    for (const std::string_view line : split(text, '\n')) {
        const size_t colon = line.find(':');
        if (colon == line.npos || std::ranges::find(names, line.substr(0, colon)) == names.end()) continue;
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        if (begin == line.npos) continue;
        const std::string_view number = line.substr(begin, line.find(' ', begin) - begin);
        sum = sum.value_or(0) + parse_number<uint64_t>(number).value_or(0) * 1024;
    }
    return sum;
}

// Of the process, or, where its first thread has ended before the others, of one of these.
std::optional<uint64_t> sum_in(pid_t pid, const char* file, std::initializer_list<std::string_view> names) {
    std::optional<uint64_t> sum = sum_of(text_of(concat("/proc/", pid, '/', file)), names);
    if (sum) return sum;
    for (const std::string& thread : threads_of(pid)) {
        sum = sum_of(text_of(concat(thread, '/', file)), names);
        if (sum) break;
    }
    return sum;
}

uint64_t resident(pid_t pid) { return sum_in(pid, "status", {"RssAnon", "RssShmem", "VmSwap"}).value_or(0); }

// What is shared counts for each process by its part. Where that is not told, the whole counts.
uint64_t proportional(pid_t pid) {
    const auto sum = sum_in(pid, "smaps_rollup", {"Pss_Anon", "Pss_Shmem", "SwapPss"});
    return sum ? *sum : resident(pid);
}

// As after vfork, until the child has executed a program.
bool share_all(pid_t one, pid_t other) { return ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0; }

}  // namespace

std::optional<MemoryWatch> MemoryWatch::create(const CgroupPlace& group, pid_t keeper, uint64_t limit) {
    if (read_limit(group, "memory.max", "memory.limit_in_bytes")) return std::nullopt;
    if (!read_file(concat("/proc/", keeper, "/task/", keeper, "/children"))) return std::nullopt;
    return MemoryWatch(keeper, limit);
}

uint64_t MemoryWatch::measure() const {
    const std::vector<pid_t> processes = descendants_of(keeper_);
    uint64_t at_most = 0;
    for (const pid_t pid : processes) at_most += resident(pid);
    if (at_most <= limit_) return at_most;
    uint64_t sum = 0;
    for (auto pid = processes.begin(); pid != processes.end(); ++pid) {
        const bool counted = std::any_of(processes.begin(), pid, [&](pid_t other) { return share_all(*pid, other); });
        if (!counted) sum += proportional(*pid);
    }
    return sum;
}

// A processor fills memory by some gigabytes in a second.
std::chrono::nanoseconds MemoryWatch::rest(uint64_t used) const {
    const uint64_t room = limit_ - std::min(used, limit_);
    return std::clamp<std::chrono::nanoseconds>(std::chrono::nanoseconds(room / 2), 10ms, 100ms);
}

}  // namespace pinfold
