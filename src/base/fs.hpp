// Files by descriptor: whole reads and writes, with errors that name the file.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// openat() with O_CLOEXEC; the error names the path.
Result<UniqueFd> open_at(int dir, const std::string& path, int flags, unsigned mode = 0);

Result<std::string> read_all(int fd, std::string_view name);
Result<std::string> read_file(const std::string& path);

// One write() call: what /proc, /sys and cgroup files ask for.
Result<void> write_once(int fd, std::string_view text, std::string_view name);
Result<void> write_file_at(int dir, const std::string& path, std::string_view text);

}  // namespace pinfold
