// Limits in the control files of a group: the files that a kernel may lack, its refusals in words, what it made of
// them.
#include "cgroup/limit_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

struct Remedy {
    std::string_view file;  // its beginning
    int code;
    const char* hint;
};

// The first entry that matches counts.
constexpr Remedy kRemedies[] = {
    {"io.max", ENODEV, "the numbers must be those of a whole disk of this host, as in /sys/block/*/dev"},
    {"io.weight", ENODEV, "the numbers must be those of a whole disk of this host, as in /sys/block/*/dev"},
    {"io.weight", EOPNOTSUPP, "let the device's scheduler be bfq, or enable io.cost.qos for it"},
    {"io.weight", ENOENT, "load the kernel's module bfq"},
    {"hugetlb.", ENOENT, "/sys/kernel/mm/hugepages lists the sizes that this host has"},
    {"rdma.", ENODEV, "/sys/class/infiniband lists the devices that this host has"},
    {"memory.swap.", ENOENT, "this kernel does not count swap: boot with swapaccount=1, or drop the limit"},
    {"cpuset.cpus", EINVAL, "/sys/devices/system/cpu/online lists the processors of this host"},
    {"cpuset.cpus", ERANGE, "/sys/devices/system/cpu/online lists the processors of this host"},
    {"cpuset.mems", EINVAL, "/sys/devices/system/node/online lists the memory nodes of this host"},
    {"cpuset.mems", ERANGE, "/sys/devices/system/node/online lists the memory nodes of this host"},
    {"cpu.max", EINVAL, "a quota is at least 1000, a period 1000 to 1000000, a burst at most the quota"},
    {"blkio.leaf_weight", ENOENT, "leaf weights went with the scheduler CFQ in Linux 5.0: use blockIO.weight"},
    {"blkio.weight", ENOENT, "load the kernel's module bfq"},
    {"blkio.", ENODEV, "the numbers must be those of a whole disk of this host, as in /sys/block/*/dev"},
    {"blkio.weight_device", EOPNOTSUPP, "let the device's scheduler be bfq"},
    {"memory.kmem.limit", EOPNOTSUPP, "leave it out: memory.limit counts the kernel's memory as well"},
    {"memory.memsw.", ENOENT, "this kernel does not count swap: boot with swapaccount=1, or drop the limit"},
    {"memory.swappiness", EINVAL, "cgroup v1 takes 0 to 100"},
    {"cpuset.", EACCES, "the group above has no more than its own cpuset.cpus and cpuset.mems list"},
    {"cpu.cfs_", EINVAL, "a quota is at least 1000, a period 1000 to 1000000, a burst at most the quota"},
    {"cpu.rt_", EINVAL, "the group above must have as much: give it cpu.rt_runtime_us, or set linux.cgroupsPath"},
    {"net_prio.", ENODEV, "the interface must be one of this host, as in /sys/class/net"},
    {"net_prio.", EINVAL, "the interface must be one of this host, as in /sys/class/net"},
    {"cgroup.", ENOENT, "this kernel has no such file"},
    {"", ENOENT, "this kernel's controller has no such file"},
};

Error explain(Error error, const CgroupWrite& write) {
    for (const Remedy& remedy : kRemedies) {
        if (error.code != remedy.code || !write.file.starts_with(remedy.file)) continue;
        error.hint = remedy.hint;
        break;
    }
    return std::move(error).within(write.property);
}

// The kernel has no such file, or nothing here that obeys it.
bool is_of_no_use(const Result<void>& written) {
    return !written && (written.error().code == ENOENT || written.error().code == EOPNOTSUPP);
}

// A kernel built without swap has no file to keep swap off in.
bool is_met_without_swap(const CgroupWrite& write) {
    return write.file == "memory.swap.max" && write.value == "0" && ::access("/proc/swaps", F_OK) != 0;
}

// What to write to take a line back that is not there yet: devices get theirs with the first limit.
std::string without_line(const std::string& file, const std::string& key, const std::string& text) {
    if (file == "io.max") return key + "rbps=max wbps=max riops=max wiops=max";
    if (file == "io.weight" || file == "io.bfq.weight") return key + "default";
    if (file.starts_with("blkio.") && file.ends_with("_device")) return key + "0";
    return text;
}

// What to write for the text that was read. In a file of several lines, the one with the same key is what the write
// changes.
std::string to_restore(const std::string& file, const std::string& written, const std::string& text) {
    const std::vector<std::string_view> lines = split(text, '\n');
    if (file == "memory.oom_control") return std::string(lines[0].substr(lines[0].rfind(' ') + 1));
    const std::string key = written.substr(0, written.find(' ') + 1);
    const auto same = std::ranges::find_if(lines, [&](std::string_view line) { return line.starts_with(key); });
    const bool has_line = !key.empty() && same != lines.end();
    return has_line ? std::string(*same) : without_line(file, key, text);
}

constexpr uint64_t kNoLimit = uint64_t{1} << 62;  // cgroup v1 says so in pages, of which there are fewer than this

// "max" and -1 count as the largest number.
std::optional<uint64_t> as_number(std::string_view text) {
    if (text == "max" || text == "-1") return kNoLimit;
    const std::optional<uint64_t> number = parse_number<uint64_t>(text);
    return number ? std::optional(std::min(*number, kNoLimit)) : std::nullopt;
}

// What the kernel counts in: pages of memory, or of the size that the file's name has ("hugetlb.2MB.max").
uint64_t unit_of(std::string_view file) {
    constexpr uint64_t kLargestPage = 1 << 16;
    if (file.starts_with("memory.")) return kLargestPage;
    if (!file.starts_with("hugetlb.")) return 1;
    const std::string_view size = split(file, '.')[1];
    return uint64_t(std::max<int64_t>(parse_size(size).value_or(1), 1));
}

bool is_same_number(std::string_view file, uint64_t planned, uint64_t found) {
    if (file == "cpu.shares") planned = std::clamp<uint64_t>(planned, 2, 262'144);  // which v1 does itself
    return planned == found || (found < planned && planned - found < unit_of(file));
}

bool has_all_words(std::string_view line, std::string_view words) {
    return std::ranges::all_of(split(words, ' '), [&](std::string_view word) { return has_word(line, word); });
}

// "8:0 rbps=max", or "8:0 0" in v1: no limit. The kernel has no line for a device without any.
bool asks_for_no_limit(std::string_view file, std::string_view planned) {
    if (file.starts_with("blkio.throttle.")) return planned.ends_with(" 0");
    return file == "io.max" && std::ranges::all_of(split(planned, ' '), [](std::string_view word) {
               return word.ends_with("=max") || word.find('=') == word.npos;
           });
}

bool has_line_for(std::string_view found, std::string_view planned) {
    const std::string device = concat(planned.substr(0, planned.find(' ')), ' ');
    return std::ranges::any_of(split(found, '\n'), [&](std::string_view line) { return line.starts_with(device); });
}

// These hold a value for each device; all others one for the group.
bool is_keyed(std::string_view file) {
    return file.starts_with("io.") || file.starts_with("blkio.") || file.starts_with("rdma.") ||
           file.starts_with("net_prio.");
}

// "8:0 rbps=1 wbps=2" names 8:0, rbps and wbps; "default 50" names default.
std::vector<std::string_view> named_in(std::string_view value) {
    std::vector<std::string_view> names;
    for (const std::string_view word : split(value, ' ')) {
        const size_t end = word.find('=');
        if (names.empty() || end != word.npos) names.push_back(word.substr(0, end));
    }
    return names;
}

bool replaces(const CgroupWrite& later, const CgroupWrite& earlier) {
    // An idle group has the least of all weights.
    if (later.file == "cpu.idle" && later.value == "1" &&
        (earlier.file == "cpu.weight" || earlier.file == "cpu.shares"))
        return true;
    if (later.file != earlier.file) return false;
    if (!is_keyed(later.file)) return true;
    const std::vector<std::string_view> names = named_in(later.value), replaced = named_in(earlier.value);
    return names[0] == replaced[0] && std::ranges::all_of(replaced, [&](std::string_view name) {
               return std::ranges::find(names, name) != names.end();
           });
}

bool can_only_be_written(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && (info.st_mode & (S_IRUSR | S_IRGRP | S_IROTH)) == 0;
}

std::optional<LimitFound> read_file_of(const std::string& directory, const std::string& file,
                                       const std::string& planned) {
    Result<std::string> text = read_long_control(AT_FDCWD, concat(directory, '/', file));
    if (!text) return std::nullopt;
    while (text->ends_with('\n')) text->pop_back();
    const bool holds = has_taken(file, planned, *text);
    return LimitFound{file, planned, std::move(text).value(), holds};
}

}  // namespace

Result<void> write_limit(int group, const CgroupWrite& write) {
    Result<void> written = write_file_at(group, write.file, write.value);
    if (!write.alternate_file.empty() && (written || is_of_no_use(written))) {
        const Result<void> alternate = write_file_at(group, write.alternate_file, write.alternate_value);
        if (alternate) return {};
        if (!is_of_no_use(alternate)) return explain(alternate.error(), write);
    }
    if (written || (written.error().code == ENOENT && is_met_without_swap(write))) return {};
    return explain(std::move(written).error(), write);
}

Undo::~Undo() {
    while (!old_.empty()) {
        const auto restored = write_file_at(old_.back().group, old_.back().file, old_.back().value);
        if (!restored) log_warning(concat("put an old limit back: ", restored.error().message));
        old_.pop_back();
    }
}

Result<void> Undo::set(int group, const CgroupWrite& write) {
    const auto before = static_cast<ptrdiff_t>(old_.size());
    remember(group, write.file, write.value);
    if (!write.alternate_file.empty()) remember(group, write.alternate_file, write.alternate_value);
    Result<void> written = write_limit(group, write);
    // What is refused has changed nothing, unless it is one of two.
    if (!written && write.alternate_file.empty()) old_.erase(old_.begin() + before, old_.end());
    return written;
}

void Undo::remember(int group, const std::string& file, const std::string& value) {
    const Result<std::string> old = read_long_control(group, file);
    if (old) old_.push_back({group, file, to_restore(file, value, *old)});  // else it cannot be written to either
}

std::optional<LimitFound> read_limit(const std::string& directory, const CgroupWrite& write) {
    std::optional<LimitFound> found = read_file_of(directory, write.file, write.value);
    if (found && found->holds) return found;
    if (!write.alternate_file.empty()) {
        std::optional<LimitFound> alternate = read_file_of(directory, write.alternate_file, write.alternate_value);
        if (alternate && (alternate->holds || !found)) return alternate;
    }
    if (found) return found;
    if (can_only_be_written(concat(directory, '/', write.file)) || is_met_without_swap(write)) return std::nullopt;
    return LimitFound{write.file, write.value, "cannot be read", false};
}

std::vector<CgroupWrite> lasting_writes(const std::vector<CgroupWrite>& writes) {
    std::vector<CgroupWrite> lasting;
    for (auto write = writes.begin(); write != writes.end(); ++write) {
        const auto replaces_it = [&](const CgroupWrite& later) { return replaces(later, *write); };
        if (std::none_of(write + 1, writes.end(), replaces_it)) lasting.push_back(*write);
    }
    return lasting;
}

bool has_taken(std::string_view file, std::string_view planned, std::string_view found) {
    while (found.ends_with('\n')) found.remove_suffix(1);
    if (planned == found) return true;
    if (file.starts_with("cpuset.")) {
        const auto wanted = parse_index_list(planned);
        return wanted && wanted == parse_index_list(found);
    }
    const std::optional<uint64_t> wanted = as_number(planned), actual = as_number(found);
    if (wanted && actual) return is_same_number(file, *wanted, *actual);
    if (asks_for_no_limit(file, planned) && !has_line_for(found, planned)) return true;
    return std::ranges::any_of(split(found, '\n'), [&](std::string_view line) { return has_all_words(line, planned); });
}

}  // namespace pinfold
