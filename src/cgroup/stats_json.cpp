// What statistics are made of: control files as numbers, and numbers as JSON.
#include "cgroup/stats_json.hpp"

#include <algorithm>

#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

std::string text_of(int group, const std::string& file) {
    Result<std::string> text = read_long_control(group, file);
    return text ? std::move(text).value() : std::string();
}

uint64_t number_in(int group, const std::string& file) {
    const std::string text = text_of(group, file);
    const std::string_view word = std::string_view(text).substr(0, text.find('\n'));
    return word == "max" ? UINT64_MAX : parse_number<uint64_t>(word).value_or(0);
}

std::vector<Entry> entries_of(std::string_view text) {
    std::vector<Entry> entries;
    for (const std::string_view line : split(text, '\n')) {
        const size_t blank = line.find(' ');
        if (blank == line.npos) continue;
        if (const auto number = parse_number<uint64_t>(line.substr(blank + 1))) {
            entries.push_back({line.substr(0, blank), *number});
        }
    }
    return entries;
}

uint64_t value_of(const std::vector<Entry>& entries, std::string_view key) {
    const auto found = std::ranges::find(entries, key, &Entry::key);
    return found == entries.end() ? 0 : found->value;
}

std::string to_json(const std::vector<Entry>& entries) {
    JsonObject object;
    for (const Entry& entry : entries) object.add(entry.key, entry.value);
    return object.text();
}

std::string to_json(const MemoryEntry& entry) {
    return JsonObject()
        .add("limit", entry.limit)
        .add("usage", entry.usage)
        .add("max", entry.most)
        .add("failcnt", entry.failures)
        .text();
}

}  // namespace pinfold
