// Reading the kernel's control files in a group, in as few system calls as possible.
#include "cgroup/control_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

Result<std::string> read_control(int dir, const std::string& path) {
    const UniqueFd fd = TRY(open_at(dir, path, O_RDONLY));
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0) return errno_error(concat("read ", path));
    return std::string(buffer, size_t(got));
}

bool has_event(std::string_view events, std::string_view key) {
    const auto lines = split(events, '\n');
    return std::ranges::find(lines, concat(key, " 1")) != lines.end();
}

bool has_word(std::string_view list, std::string_view word) {
    while (list.ends_with('\n')) list.remove_suffix(1);
    const auto words = split(list, ' ');
    return std::ranges::find(words, word) != words.end();
}

}  // namespace pinfold
