// What create, run and exec ask of the options for the process that they start.
#pragma once

#include "cli/verbs.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// Refused: a terminal that nobody would hold, a socket without a terminal, descriptors that the caller did not pass.
Result<void> check_child_options(const ChildOptions& options, const Process& process);

// Refused: a terminal, in the foreground, with a standard input that nothing ever comes from. The program would wait.
Result<void> check_input(const ChildOptions& options, const Process& process);

ChildOptions with_cache(ChildOptions options, const GlobalOptions& global);

}  // namespace pinfold
