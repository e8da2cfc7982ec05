// The listener of a seccomp filter with SCMP_ACT_NOTIFY, from the child to the program that will decide.
//
// The filter is loaded last, and once it is, the child cannot rely on a single system call. So it announces beforehand
// which descriptor the listener will have, and after loading it waits, without any call, for a word of its memory to
// change. The peer takes the descriptor out of the child, hands it over, and writes that word.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "process/protocol.hpp"
#include "seccomp/compile.hpp"
#include "state/store.hpp"

namespace pinfold {

// The child: returns under the filter, when the listener is where it belongs.
Result<void> load_with_listener(const SeccompFilter& filter, const Channel& channel);

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
