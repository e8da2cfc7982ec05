// The moment at which a receipt is read.
#include "process/receipt.hpp"

#include "process/child_memory.hpp"

namespace pinfold {

Result<void> inspect(const HeldProcess& process, const Channel& channel, const std::function<Receipt()>& read,
                     const ReceiptHandler& handler) {
    const ChildMemory memory{process.pid, process.pidfd};
    TRY(memory.await_waiting(process.gate, channel));
    const Receipt receipt = read();
    TRY(handler ? handler(receipt) : require(receipt));
    return memory.let_go_on(process.gate);
}

}  // namespace pinfold
