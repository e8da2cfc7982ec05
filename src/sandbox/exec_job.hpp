// One more program in a container, watched like a job of its own: its output, its time, its forbidden calls.
#pragma once

#include <chrono>
#include <optional>

#include "pinfold/sandbox.hpp"
#include "process/exec.hpp"
#include "sandbox/streams.hpp"

namespace pinfold {

struct ExecWatch {
    std::optional<std::chrono::nanoseconds> timeout;
    StreamWishes streams;
    ReceiptHandler on_receipt{};  // none: require()
    bool receipt = false;         // in the result, even where it holds
};

// Does not fail: a program that could not be started is a result too.
SandboxResult run_exec_job(ExecPlan plan, const ContainerState& state, const ChildOptions& options,
                           const ExecWatch& watch);

// Runs it to its end as exec_in_container() does, and what it leaves behind goes on; but none of our streams is its
// own. A terminal is not read from.
Result<int> run_exec_relayed(ExecRequest request);

}  // namespace pinfold
