// A proc file system for a pid namespace that the process which mounts it is not in.
#pragma once

#include "kernel/mounts.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// A detached mount that shows the processes of that namespace.
Result<UniqueFd> make_proc_of(int pid_namespace, const FilesystemRequest& request);

}  // namespace pinfold
