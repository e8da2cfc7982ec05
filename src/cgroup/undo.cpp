// Limits as they were before they were changed.
#include "cgroup/undo.hpp"

#include <algorithm>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/write_limit.hpp"

namespace pinfold {

namespace {

// What takes a line back that is not there yet: devices get theirs with the first limit.
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

}  // namespace

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
    if (!write.twin_file.empty()) remember(group, write.twin_file, write.twin_value);
    Result<void> written = write_limit(group, write);
    // What is refused has changed nothing, unless it is one of two.
    if (!written && write.twin_file.empty()) old_.erase(old_.begin() + before, old_.end());
    return written;
}

void Undo::remember(int group, const std::string& file, const std::string& value) {
    const Result<std::string> old = read_long_control(group, file);
    if (old) old_.push_back({group, file, to_restore(file, value, *old)});  // else it cannot be written to either
}

}  // namespace pinfold
