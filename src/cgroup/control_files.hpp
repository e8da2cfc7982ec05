// Groups and the control files in them, read in as few system calls as possible.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cgroup/place.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// The kernel gives out a control file whole at the first read; longer than 4 KiB are only lists of processes,
// which a caller reads again until the group is empty.
Result<std::string> read_control(int dir, const std::string& path);

// The same for files that may be longer and are read only once.
Result<std::string> read_long_control(int dir, const std::string& path);

// The group's directory in cgroup v2, or in one of v1's hierarchies where there is no v2; and a handle (O_PATH) on it:
// what is below it is reached by openat.
Result<std::string> directory_of(const CgroupPlace& place);
Result<UniqueFd> open_group(const CgroupPlace& place);

// Each calls visit with one name after the other until it returns false: groups directly below, or control files.
using Visitor = std::function<bool(std::string_view name)>;
Result<void> visit_children(int group, const Visitor& visit);
Result<void> visit_files(int group, const Visitor& visit);

// The line "key 1" is in the text of a cgroup.events file.
bool has_event(std::string_view events, std::string_view key);

// The word is in a list as cgroup.controllers has it.
bool has_word(std::string_view list, std::string_view word);

}  // namespace pinfold
