// A process that leads connections to ports of this machine into a sandbox, whose network knows nothing of it.
#pragma once

#include <optional>
#include <vector>

#include "base/process.hpp"
#include "files/inside.hpp"
#include "pinfold/result.hpp"
#include "process/spawn.hpp"
#include "sandbox/publish.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// All that the process will be able to do: accept, connect, read, write, wait.
Result<SeccompFilter> forwarder_filter();

// It is in the sandbox's network and user namespace, as the payload's user, without capabilities, under a filter, and
// out of the sandbox's sight. It has the listeners, the connections and a descriptor of the sandbox's init, with whose
// end it ends; so nothing is left of it if we are killed, and a sandbox that stays needs nobody else.
class Forwarder {
public:
    // Returns when it accepts connections. `inside` has a way.
    static Result<Forwarder> start(const Child& sandbox_init, const InsideOf& inside,
                                   const std::vector<Listener>& listeners, const SeccompFilter& filter);

    Forwarder(Forwarder&& other) noexcept = default;
    Forwarder& operator=(Forwarder&&) = delete;
    Forwarder(const Forwarder&) = delete;
    Forwarder& operator=(const Forwarder&) = delete;
    // For as long as it may still pass on what the sandbox has sent, but no longer. The sandbox init must have been
    // killed before.
    ~Forwarder();

    void release() noexcept;

private:
    Forwarder(ChildGuard process, UniqueFd pidfd) : process_(std::move(process)), pidfd_(std::move(pidfd)) {}

    ChildGuard process_;
    UniqueFd pidfd_;  // none: it is on its own
};

}  // namespace pinfold
