// Files by descriptor: whole reads and writes, with errors that name the file.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// openat() with O_CLOEXEC; the error names the path.
Result<UniqueFd> open_at(int dir, const std::string& path, int flags, unsigned mode = 0);

// For files of the kernel and of our own. What others have made may be anything, of any size: that is for the functions
// below.
Result<std::string> read_all(int fd, std::string_view name);
Result<std::string> read_file(const std::string& path);

// Regular files only. Nothing else is opened at all: a FIFO would wait for its writer, a device may do whatever it
// does.
Result<UniqueFd> open_regular(int dir, const std::string& path, int flags = 0);
// What a file, a pipe or a socket still holds. More than `most` bytes are an error.
Result<std::string> read_at_most(int fd, std::string_view name, size_t most);
Result<std::string> read_regular(const std::string& path, size_t most);

// One write() call: what /proc, /sys and cgroup files ask for.
Result<void> write_once(int fd, std::string_view text, std::string_view name);
Result<void> write_file_at(int dir, const std::string& path, std::string_view text);

}  // namespace pinfold
