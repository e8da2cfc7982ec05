// The runtime's own program file, as a container could reach it through /proc/self/exe (CVE-2019-5736).
#pragma once

#include "pinfold/result.hpp"

namespace pinfold {

// Starts the program again from a read-only clone of its mount: a container that opens /proc/PID/exe for writing then
// gets EROFS, however long it waits. Returns only on failure.
Error run_from_readonly_binary(char** argv);

}  // namespace pinfold
