// What the processes of a sandbox have mapped.
#include "sandbox/memory_watch.hpp"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

using namespace std::chrono_literals;

// One look at all processes. Their threads come and go meanwhile, so that some have to be asked again; but whoever
// makes them do so without end does not hold us up: deadlines, signals and forbidden calls wait for us.
class SamplingRound {
public:
    explicit SamplingRound(int64_t end) : end_(end), asks_until_(monotonic_ns() + kPatience.count()) {}

    bool is_over() const { return end_ != INT64_MAX && monotonic_ns() >= end_; }
    // Each is asked once at least.
    bool may_ask_again() const { return monotonic_ns() < asks_until_ && !is_over(); }

private:
    static constexpr std::chrono::nanoseconds kPatience = 20ms;

    int64_t end_;
    int64_t asks_until_;
};

namespace {

// Nothing of a process that has ended meanwhile.
std::string text_of(const std::string& path) {
    Result<std::string> text = read_file(path);
    return text ? std::move(text).value() : std::string();
}

// Those of a thread that ends go to another one. So where a thread has ended before it was asked, all are asked again.
std::set<pid_t> children_of(pid_t pid, const SamplingRound& round) {
    std::set<pid_t> children;
    bool asked_all = false;
    do {
        asked_all = true;
        for (const std::string& thread : threads_of(pid)) {
            const Result<std::string> list = read_file(thread + "/children");
            if (!list) asked_all = false;
            for (const std::string_view word : split(list ? std::string_view(*list) : "", ' ')) {
                if (const auto child = parse_number<pid_t>(word)) children.insert(*child);
            }
        }
    } while (!asked_all && round.may_ask_again());
    return children;
}

// As ask_threads() does, but for as long as the round allows.
bool ask_any_thread(pid_t pid, const SamplingRound& round, const std::function<bool(const std::string& thread)>& ask) {
    if (ask(concat("/proc/", pid))) return true;
    do {
        const std::vector<std::string> threads = threads_of(pid);
        if (std::ranges::any_of(threads, ask)) return true;
        if (threads.size() < 2) return false;  // there is but the first one, which has ended
    } while (round.may_ask_again());
    return false;
}

// The first process of the sandbox takes in those whose parents have ended, so all of them descend from it.
std::vector<pid_t> descendants_of(pid_t first, const SamplingRound& round) {
    std::vector<pid_t> found = {first};
    for (size_t next = 0; next < found.size() && !round.is_over(); ++next)
        std::ranges::copy(children_of(found[next], round), std::back_inserter(found));
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

// A thread of a process, and what it says of the memory that all of them share.
struct Speaker {
    pid_t process = 0;
    std::string thread;  // in /proc
    std::string status;

    pid_t id() const { return parse_number<pid_t>(std::string_view(thread).substr(thread.rfind('/') + 1)).value_or(0); }
};

bool tells_memory(std::string_view status) { return status.find("VmSize:") != status.npos; }

// None where all have ended.
std::optional<Speaker> speaker_of(pid_t pid, const SamplingRound& round) {
    Speaker speaker;
    const bool found = ask_any_thread(pid, round, [&](const std::string& thread) {
        speaker = {pid, thread, text_of(thread + "/status")};
        return tells_memory(speaker.status);
    });
    return found ? std::optional(speaker) : std::nullopt;
}

struct Used {
    uint64_t own = 0;
    uint64_t shared = 0;

    void operator+=(const Used& other) {
        own += other.own;
        shared += other.shared;
    }
};

// Tables of pages, beyond what the pages that are there need: who touches little of many addresses has more of those
// than of anything else.
uint64_t tables_of(const Speaker& speaker) {
    const uint64_t needed = (1 << 20) + sum_of(speaker.status, {"VmRSS"}) / 256;
    const uint64_t tables = sum_of(speaker.status, {"VmPTE"});
    return tables - std::min(tables, needed);
}

Used resident(const Speaker& speaker) {
    return {sum_of(speaker.status, {"RssAnon", "VmSwap"}) + tables_of(speaker), sum_of(speaker.status, {"RssShmem"})};
}

// What is shared counts for each process by its part. Where that is not told, the whole counts, if the process has not
// ended meanwhile.
Used proportional(const Speaker& speaker, const SamplingRound& round) {
    const std::string text = text_of(speaker.thread + "/smaps_rollup");
    if (text.find("Pss_Anon:") != text.npos)
        return {sum_of(text, {"Pss_Anon", "SwapPss"}) + tables_of(speaker), sum_of(text, {"Pss_Shmem"})};
    const std::optional<Speaker> again = speaker_of(speaker.process, round);
    return again ? resident(*again) : Used{};
}

// In ticks of the clock: what a process has used, and its children that it has reaped.
struct Ticks {
    uint64_t own = 0;
    uint64_t reaped = 0;
    uint64_t started = 0;
};

Ticks ticks_of(pid_t pid) {
    const std::string text = text_of(concat("/proc/", pid, "/stat"));
    const size_t name = text.rfind(')');  // which may hold anything
    if (name == text.npos) return {};
    const std::vector<std::string_view> fields = split(std::string_view(text).substr(name), ' ');
    const auto number = [&](size_t field) {  // counted from the name, as proc(5) does from 2
        return field < fields.size() ? parse_number<uint64_t>(fields[field]).value_or(0) : 0;
    };
    return {number(12) + number(13), number(14) + number(15), number(20)};
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
void note_process(pid_t pid, const SamplingRound& round, MemoryWatch::Sizes& sizes) {
    std::string maps;
    bool hidden = false;
    ask_any_thread(pid, round, [&](const std::string& thread) {
        Result<std::string> text = read_file(thread + "/maps");
        hidden = !text && (text.error().code == EACCES || text.error().code == EPERM);
        if (text) maps = std::move(text).value();
        return hidden || !maps.empty();
    });
    for (const std::string_view line : split(maps, '\n')) note_mapping(line, sizes);
    if (!hidden) return;
    if (const std::optional<Speaker> speaker = speaker_of(pid, round))
        sizes[concat("process ", pid)] = sum_of(speaker->status, {"VmSize"});
}

// As after vfork, until the child has executed a program. Two that have no memory any more are equal as well.
bool share_all(const Speaker& one, const Speaker& other) {
    return ::syscall(SYS_kcmp, one.id(), other.id(), KCMP_VM, 0, 0) == 0 &&
           tells_memory(text_of(one.thread + "/status"));
}

}  // namespace

std::optional<MemoryWatch> MemoryWatch::create(const CgroupPath& group, pid_t sandbox_init, uint64_t limit) {
    if (read_limit(group, "memory.max", "memory.limit_in_bytes")) return std::nullopt;
    if (!read_file(concat("/proc/", sandbox_init, "/task/", sandbox_init, "/children"))) return std::nullopt;
    return MemoryWatch(sandbox_init, limit);
}

// An object keeps its pages until the last mapping of it is gone, even those that are no longer in any: so its size is
// the largest that was ever seen.
uint64_t MemoryWatch::size_of_shared(const std::vector<pid_t>& processes, const SamplingRound& round) {
    Sizes sizes;
    for (const pid_t pid : processes) {
        if (round.is_over()) break;
        note_process(pid, round, sizes);
    }
    uint64_t sum = 0;
    for (auto& [object, size] : sizes) {
        if (const auto before = sizes_.find(object); before != sizes_.end()) size = std::max(size, before->second);
        sum += size;
    }
    sizes_ = std::move(sizes);
    return sum;
}

// Whoever ignores the end of its children has their time counted nowhere: so what was seen of each counts at least.
std::chrono::nanoseconds MemoryWatch::cpu_time() {
    constexpr std::chrono::nanoseconds kLongest = 300ms;  // the sandbox init does not wait much longer at the deadline
    const SamplingRound round(monotonic_ns() + kLongest.count());
    uint64_t counted = ticks_of(sandbox_init_).reaped;
    for (const pid_t pid : descendants_of(sandbox_init_, round)) {
        const Ticks ticks = ticks_of(pid);
        counted += ticks.own + ticks.reaped;
        if (ticks.own != 0) ticks_[{pid, ticks.started}] = ticks.own;  // each kept one brings the end nearer
    }
    uint64_t seen = 0;
    for (const auto& [process, own] : ticks_) seen += own;
    constexpr uint64_t kSecond = 1'000'000'000;
    return std::chrono::nanoseconds(std::max(counted, seen) * (kSecond / uint64_t(::sysconf(_SC_CLK_TCK))));
}

uint64_t MemoryWatch::measure(int64_t end) {
    const SamplingRound round(end);
    const std::vector<pid_t> processes = descendants_of(sandbox_init_, round);
    const uint64_t shared = size_of_shared(processes, round);
    std::vector<Speaker> speakers;
    for (const pid_t pid : processes) {
        if (round.is_over()) break;
        if (std::optional<Speaker> speaker = speaker_of(pid, round)) speakers.push_back(std::move(*speaker));
    }
    Used used;
    for (const Speaker& speaker : speakers) used += resident(speaker);
    const uint64_t at_most = used.own + std::max(used.shared, shared);
    if (at_most <= limit_) return at_most;
    used = {};
    for (auto next = speakers.begin(); next != speakers.end() && !round.is_over(); ++next) {
        const auto is_same = [&](const Speaker& other) { return share_all(*next, other); };
        if (std::none_of(speakers.begin(), next, is_same)) used += proportional(*next, round);
    }
    return used.own + std::max(used.shared, shared);
}

// A processor fills memory by some gigabytes in a second.
std::chrono::nanoseconds MemoryWatch::rest(uint64_t used) const {
    const uint64_t room = limit_ - std::min(used, limit_);
    return std::clamp<std::chrono::nanoseconds>(std::chrono::nanoseconds(room / 2), 10ms, 100ms);
}

}  // namespace pinfold
