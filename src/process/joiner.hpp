// The extra process of a start that joins namespaces or shifts clocks. Joining a user namespace costs the rights
// over the host, and a pid or time namespace only takes in future children: neither suits the parent itself.
#pragma once

#include "kernel/namespaces.hpp"
#include "plan/plan.hpp"
#include "process/init.hpp"

namespace pinfold {

// Joins, then clones the real child as the parent's own (CLONE_PARENT), tells its pid, and is gone.
[[noreturn]] void run_joiner(const Plan& plan, std::vector<OpenedNamespace> namespaces, InitContext context);

}  // namespace pinfold
