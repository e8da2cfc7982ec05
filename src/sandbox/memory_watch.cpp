// What the processes of a sandbox have mapped.
#include "sandbox/memory_watch.hpp"

#include <dirent.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

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

// The sum of the lines with these names, which are in kilobytes.
uint64_t sum_of(std::string_view text, std::initializer_list<std::string_view> names) {
    uint64_t sum = 0;
    for (const std::string_view line : split(text, '\n')) {
        const size_t colon = line.find(':');
        if (colon == line.npos || std::ranges::find(names, line.substr(0, colon)) == names.end()) continue;
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        if (begin == line.npos) continue;
        const std::string_view number = line.substr(begin, line.find(' ', begin) - begin);
        sum += parse_number<uint64_t>(number).value_or(0) * 1024;
    }
    return sum;
}

// Of the process, or, where its first thread has ended before the others, of one of these; nothing where none of them
// tells what is needed.
std::string text_in(pid_t pid, const char* file, std::string_view needed) {
    std::string text = text_of(concat("/proc/", pid, '/', file));
    if (text.find(needed) != text.npos) return text;
    for (const std::string& thread : threads_of(pid)) {
        text = text_of(concat(thread, '/', file));
        if (text.find(needed) != text.npos) return text;
    }
    return {};
}

struct Used {
    uint64_t own = 0;
    uint64_t shared = 0;

    void operator+=(const Used& other) {
        own += other.own;
        shared += other.shared;
    }
};

Used resident(pid_t pid) {
    const std::string text = text_in(pid, "status", "RssAnon:");
    return {sum_of(text, {"RssAnon", "VmSwap"}), sum_of(text, {"RssShmem"})};
}

// What is shared counts for each process by its part. Where that is not told, the whole counts.
Used proportional(pid_t pid) {
    const std::string text = text_in(pid, "smaps_rollup", "Pss_Anon:");
    if (text.empty()) return resident(pid);
    return {sum_of(text, {"Pss_Anon", "SwapPss"}), sum_of(text, {"Pss_Shmem"})};
}

bool is_shared_memory(std::string_view permissions, std::string_view path) {
    if (!permissions.ends_with('s')) return false;
    return path.starts_with("/dev/zero") || path.starts_with("/memfd:") || path.starts_with("/SYSV");
}

// Where the mapping of a line ends in its object: "BEGIN-END PERMISSIONS OFFSET DEVICE INODE   PATH".
void note_mapping(std::string_view line, MemoryWatch::Sizes& sizes) {
    const size_t path = line.find('/');
    if (path == line.npos) return;
    const std::vector<std::string_view> words = split(line.substr(0, path), ' ');
    if (words.size() < 5 || !is_shared_memory(words[1], line.substr(path))) return;
    const size_t dash = words[0].find('-');
    if (dash == line.npos) return;
    const auto begin = parse_number<uint64_t>(words[0].substr(0, dash), 16);
    const auto end = parse_number<uint64_t>(words[0].substr(dash + 1), 16);
    const auto offset = parse_number<uint64_t>(words[2], 16);
    if (!begin || !end || !offset) return;
    uint64_t& size = sizes[concat(words[3], ' ', words[4])];
    size = std::max(size, *offset + (*end - *begin));
}

// One that lives, but does not let us see what it has mapped, counts as if all of that were shared memory.
void note_hidden(pid_t pid, MemoryWatch::Sizes& sizes) {
    const Result<std::string> maps = read_file(concat("/proc/", pid, "/maps"));
    const bool hidden = !maps && (maps.error().code == EACCES || maps.error().code == EPERM);
    if (hidden) sizes[concat("process ", pid)] = sum_of(text_in(pid, "status", "VmSize:"), {"VmSize"});
}

MemoryWatch::Sizes shared_memory_of(const std::vector<pid_t>& processes) {
    MemoryWatch::Sizes sizes;
    for (const pid_t pid : processes) {
        const std::string text = text_in(pid, "maps", "-");
        if (text.empty()) note_hidden(pid, sizes);
        for (const std::string_view line : split(text, '\n')) note_mapping(line, sizes);
    }
    return sizes;
}

// As after vfork, until the child has executed a program.
bool share_all(pid_t one, pid_t other) { return ::syscall(SYS_kcmp, one, other, KCMP_VM, 0, 0) == 0; }

}  // namespace

std::optional<MemoryWatch> MemoryWatch::create(const CgroupPath& group, pid_t sandbox_init, uint64_t limit) {
    if (read_limit(group, "memory.max", "memory.limit_in_bytes")) return std::nullopt;
    if (!read_file(concat("/proc/", sandbox_init, "/task/", sandbox_init, "/children"))) return std::nullopt;
    return MemoryWatch(sandbox_init, limit);
}

// An object keeps its pages until the last mapping of it is gone, even those that are no longer in any: so its size is
// the largest that was ever seen.
uint64_t MemoryWatch::size_of_shared(const std::vector<pid_t>& processes) {
    Sizes sizes = shared_memory_of(processes);
    uint64_t sum = 0;
    for (auto& [object, size] : sizes) {
        if (const auto before = sizes_.find(object); before != sizes_.end()) size = std::max(size, before->second);
        sum += size;
    }
    sizes_ = std::move(sizes);
    return sum;
}

uint64_t MemoryWatch::measure() {
    const std::vector<pid_t> processes = descendants_of(sandbox_init_);
    const uint64_t shared = size_of_shared(processes);
    Used used;
    for (const pid_t pid : processes) used += resident(pid);
    const uint64_t at_most = used.own + std::max(used.shared, shared);
    if (at_most <= limit_) return at_most;
    used = {};
    for (auto pid = processes.begin(); pid != processes.end(); ++pid) {
        const bool counted = std::any_of(processes.begin(), pid, [&](pid_t other) { return share_all(*pid, other); });
        if (!counted) used += proportional(*pid);
    }
    return used.own + std::max(used.shared, shared);
}

// A processor fills memory by some gigabytes in a second.
std::chrono::nanoseconds MemoryWatch::rest(uint64_t used) const {
    const uint64_t room = limit_ - std::min(used, limit_);
    return std::clamp<std::chrono::nanoseconds>(std::chrono::nanoseconds(room / 2), 10ms, 100ms);
}

}  // namespace pinfold
