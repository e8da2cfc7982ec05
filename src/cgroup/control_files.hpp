// Reading the kernel's control files in a group, in as few system calls as possible.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"

namespace pinfold {

// The kernel gives out a control file whole at the first read; longer than 4 KiB are only lists of processes,
// which a caller reads again until the group is empty.
Result<std::string> read_control(int dir, const std::string& path);

// The line "key 1" is in the text of a cgroup.events file.
bool has_event(std::string_view events, std::string_view key);

// The word is in a list as cgroup.controllers has it.
bool has_word(std::string_view list, std::string_view word);

}  // namespace pinfold
