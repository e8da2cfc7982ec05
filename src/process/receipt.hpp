// The moment at which a receipt is read: all is set up, and the process waits before its execve.
#pragma once

#include <sys/types.h>

#include "process/protocol.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

// A process that waits at its gate.
struct HeldProcess {
    pid_t pid;
    int pidfd;
    WaitingPlace gate;
};

Result<void> inspect(const HeldProcess& process, const Channel& channel, const std::function<Receipt()>& read,
                     const ReceiptHandler& handler);

}  // namespace pinfold
