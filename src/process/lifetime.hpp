// The end of a container that exists: start's other half, and delete's whole.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "state/store.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

// Lets the payload of a created container run. If that fails, the container is destroyed. The caller holds the lock.
Result<void> start_container(const std::string& root, const ContainerState& state, const ReceiptHandler& on_receipt);

// Kills its first process, and with it all others. Without a lock: who holds that may wait for this very process, which
// somebody else has stopped.
Result<void> kill_container(const ContainerState& state);

// Kills what still runs of it; removes its cgroup, then its state, in this order, so that an interrupted delete can be
// repeated; and runs its poststop hooks. The caller holds the lock.
Result<void> destroy_container(const std::string& root, const ContainerState& state);

}  // namespace pinfold
