// Which operation is legal for a container in which state.
#pragma once

#include "pinfold/result.hpp"
#include "state/store.hpp"

namespace pinfold {

enum class Operation : uint8_t { start, exec, exec_ignoring_pause, kill, pause, resume, update, events, copy, remove };

// Or one sentence that says why not, and what would help.
Result<void> check_operation(Operation operation, const ContainerState& state);

}  // namespace pinfold
