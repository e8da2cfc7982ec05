// Whether a filter can be loaded before the last steps of a start: they are taken under it then.
#pragma once

#include <linux/filter.h>

#include <span>

namespace pinfold {

struct EndOfStart {
    bool waits = false;       // for the container's start
    bool hooks = false;       // are run
    bool trampoline = false;  // is executed, and executes the program
};

// What is left to do when a process is about to be seen by others (after FilterTime::early in
// process/payload_steps.hpp): to clone itself, to hear from its parent, to take its limits, its terminal and its
// rights, and to execute its program.
bool allows_end_of_start(std::span<const sock_filter> program, EndOfStart end = {});

}  // namespace pinfold
