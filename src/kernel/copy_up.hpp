// tmpcopyup: a tmpfs that starts with what the image has at its place.
#pragma once

#include "pinfold/result.hpp"

namespace pinfold {

// Copies files, directories, links and special files with owner, mode and times. Both are directories; nothing
// is followed out of them. Mount points below the source are not entered.
Result<void> copy_tree(int from, int to);

}  // namespace pinfold
