// Reading back one limit of a group.
#include "cgroup/read_limit.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/strings.hpp"
#include "base/units.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/write_limit.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 62;  // cgroup v1 says so in pages, of which there are fewer than this

// "max" and its forms are the largest number.
std::optional<uint64_t> as_number(std::string_view text) {
    if (text == "max" || text == "-1") return kNoLimit;
    const std::optional<uint64_t> number = parse_number<uint64_t>(text);
    return number ? std::optional(std::min(*number, kNoLimit)) : std::nullopt;
}

// In what the kernel counts: pages of memory, or of the size that the file's name has ("hugetlb.2MB.max").
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

std::optional<LimitFound> read_limit(const std::string& directory, const CgroupWrite& write) {
    std::optional<LimitFound> found = read_file_of(directory, write.file, write.value);
    if (found && found->holds) return found;
    if (!write.twin_file.empty()) {
        std::optional<LimitFound> twin = read_file_of(directory, write.twin_file, write.twin_value);
        if (twin && (twin->holds || !found)) return twin;
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
