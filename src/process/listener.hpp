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

// Whom the listener is of, for the peer.
struct ListeningProcess {
    pid_t pid = 0;
    int pidfd = -1;
    const ContainerState& state;
};

// The peer, where it decides itself: the listener. The child goes on.
Result<UniqueFd> adopt_listener(const ListenerOffer& offer, const Channel& channel, pid_t pid, int pidfd);

// Afterwards: until the payload has been executed. A call that reaches the listener before is the one that executes it.
Result<void> await_exec(const Channel& channel, int listener);

// The peer, where another program decides: sends the listener to the profile's socket. The child goes on.
Result<void> hand_over_listener(const ListenerOffer& offer, const Channel& channel, const ListeningProcess& process,
                                const Seccomp& profile);

}  // namespace pinfold
