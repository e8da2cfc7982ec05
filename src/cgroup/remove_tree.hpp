// Removing a group and all below it, in either version of cgroups.
#pragma once

#include <functional>
#include <string>

#include "cgroup/deadline.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// Puts an end to what runs in this one group, a descriptor of which it is given.
using EmptyGroup = std::function<Result<void>(int group)>;

// The group `top` directly below `parent`, and all below it, leaves first. Those that hold processes are emptied.
Result<void> remove_tree(UniqueFd parent, const std::string& top, const Deadline& deadline, const EmptyGroup& empty);

}  // namespace pinfold
