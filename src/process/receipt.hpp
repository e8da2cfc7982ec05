// Reading a receipt. The reader is the parent, which sees the child from outside: what the child believes of itself
// does not matter.
#pragma once

#include <sys/types.h>

#include <functional>

#include "pinfold/receipt.hpp"
#include "pinfold/result.hpp"
#include "plan/plan.hpp"
#include "process/protocol.hpp"

namespace pinfold {

Receipt read_receipt(const Plan& plan, pid_t pid);

// Of one more process in a container.
struct JoinedContainer {
    pid_t init;
    const CgroupPlace& place;
};
Receipt read_receipt(const ExecPlan& plan, const JoinedContainer& container, pid_t pid);

// An error that names all that does not hold.
Result<void> require(const Receipt& receipt);

// A process that waits at its gate.
struct HeldProcess {
    pid_t pid;
    int pidfd;
    WaitingPlace gate;
};

// What is to become of a receipt; an error ends the start. Nothing: require() alone.
using ReceiptHandler = std::function<Result<void>(const Receipt&)>;
Result<void> inspect(const HeldProcess& process, const Channel& channel, const std::function<Receipt()>& read,
                     const ReceiptHandler& handler);

}  // namespace pinfold
