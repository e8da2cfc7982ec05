// The listener of a seccomp filter with SCMP_ACT_NOTIFY, from the child to the program that will decide.
//
// The filter is loaded last. So the child announces beforehand which descriptor the listener will have, and after
// loading it waits at a word of its memory. The peer takes the descriptor out of the child, and lets it go on.
#pragma once

#include <optional>
#include <string>

#include "pinfold/result.hpp"
#include "process/protocol.hpp"
#include "seccomp/compile.hpp"
#include "state/store.hpp"

namespace pinfold {

bool has_listener(const std::optional<SeccompFilter>& filter);

// The child: what it will announce; empty where the filter has no listener. `any` is an open descriptor.
Result<ListenerOffer> offer_listener(const std::optional<SeccompFilter>& filter, int any);
// Returns under the filter, when the listener is where it belongs.
Result<void> load_with_listener(const SeccompFilter& filter, const ListenerOffer& offer);

// The peer, while the child waits.
Result<UniqueFd> take_listener(int pidfd, int number);

// Where another program decides: to the profile's socket, with the state of the container and the pid of the process.
Result<void> send_listener(int listener, const ContainerState& state, pid_t pid, const Seccomp& profile);

// Where the peer decides itself: until the payload has been executed. A call that reaches the listener before is the
// one that executes it.
Result<void> await_exec(const Channel& channel, int listener);

}  // namespace pinfold
