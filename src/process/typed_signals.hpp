// Signals that were typed at the caller's terminal. The kernel sends those to all processes that the user runs there;
// the program is in a session of its own, so they are passed on to all of its group.
#pragma once

#include <sys/signalfd.h>

#include "pinfold/result.hpp"

namespace pinfold {

// Whether it was typed, or came with the terminal's end.
bool came_from_terminal(const signalfd_siginfo& info);

// To all of the process group that it leads, or to it alone if it leads none. It has to be a child of ours that nobody
// else reaps: until then its number is its group's. True if it is there to receive it.
Result<bool> send_signal_to_group(int pidfd, int signal);

// To the payload of a sandbox and all others of its group, whose number only the sandbox init holds: that sends it
// there, as this signal is queued, and no other for it is.
Result<bool> send_to_payload_group(int sandbox_init, int signal);

}  // namespace pinfold
