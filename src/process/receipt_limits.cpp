// The receipt's lines on cgroups.
#include <fcntl.h>

#include <algorithm>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "process/receipt_parts.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kNoLimit = uint64_t{1} << 62;  // cgroup v1 says so in pages, of which there are fewer than this

// "max" and its forms are the largest number.
std::optional<uint64_t> as_number(std::string_view text) {
    if (text == "max" || text == "-1") return kNoLimit;
    const std::optional<uint64_t> number = parse_number<uint64_t>(text);
    return number ? std::optional(std::min(*number, kNoLimit)) : std::nullopt;
}

// The kernel counts in pages.
bool is_rounded(uint64_t planned, uint64_t found) {
    constexpr uint64_t kLargestPage = 1 << 16;
    return found <= planned && planned - found < kLargestPage;
}

bool has_all_words(std::string_view line, std::string_view words) {
    for (const std::string_view word : split(words, ' ')) {
        if (!has_word(line, word)) return false;
    }
    return true;
}

// From /proc/PID/cgroup: the group in the hierarchy of this controller of v1, or in v2, which is named by none.
std::string_view group_in(std::string_view list, std::string_view controller) {
    for (const std::string_view line : split(list, '\n')) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == line.npos) continue;
        const std::vector<std::string_view> mounted = split(line.substr(first + 1, second - first - 1), ',');
        if (std::ranges::find(mounted, controller) != mounted.end()) return line.substr(second + 1);
    }
    return "no group";
}

// It may be in a group below.
bool is_at(std::string_view group, std::string_view place) {
    return group.starts_with(place) && (group.size() == place.size() || group[place.size()] == '/');
}

void add_limit(const std::string& directory, const CgroupWrite& write, Receipt& receipt) {
    const Result<std::string> text = read_long_control(AT_FDCWD, concat(directory, '/', write.file));
    if (!text) return;  // a file that is only written to, or a limit that this kernel keeps elsewhere
    std::string found = *text;
    while (found.ends_with('\n')) found.pop_back();
    const bool holds = has_taken(write.file, write.value, found);
    receipt.push_back({write.file, write.value, std::move(found), holds});
}

}  // namespace

bool has_taken(std::string_view file, std::string_view planned, std::string_view found) {
    while (found.ends_with('\n')) found.remove_suffix(1);
    if (planned == found) return true;
    if (file.starts_with("cpuset.")) return parse_index_list(planned) == parse_index_list(found);
    const std::optional<uint64_t> wanted = as_number(planned), actual = as_number(found);
    if (wanted && actual) return *wanted == *actual || is_rounded(*wanted, *actual);
    for (const std::string_view line : split(found, '\n')) {
        if (has_all_words(line, planned)) return true;
    }
    return false;
}

void add_membership_line(const CgroupPlace& place, pid_t pid, Receipt& receipt) {
    if (!place.exists()) return;
    const Result<std::string> list = read_file(concat("/proc/", pid, "/cgroup"));
    std::vector<std::string> elsewhere;
    const auto check = [&](const std::string& controller) {
        const std::string_view group = list ? group_in(*list, controller) : "no group";
        if (!is_at(group, place.path)) elsewhere.push_back(concat(group, controller.empty() ? "" : " of ", controller));
    };
    if (!place.mount.empty()) check("");
    for (const auto& hierarchy : place.legacy) check(hierarchy.first);
    receipt.push_back(equal_line("cgroup", place.path, elsewhere.empty() ? place.path : join(elsewhere, ", ")));
}

void add_limit_lines(const CgroupPlan& plan, Receipt& receipt) {
    const CgroupPlace& place = plan.place;
    if (!place.exists()) return;
    for (const CgroupWrite& write : plan.writes) add_limit(place.mount + place.path, write, receipt);
    for (const CgroupWrite& write : plan.legacy_writes) {
        const auto mount = place.legacy.find(std::string(controller_of(write.file)));
        if (mount != place.legacy.end()) add_limit(mount->second + place.path, write, receipt);
    }
}

}  // namespace pinfold
