// Work in a process of its own, for a caller whose threads, signals and children are not ours to touch.
#pragma once

#include <functional>
#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

// Forks; the child does the work and sends its answer back. It dies with the calling thread.
Result<std::string> in_worker(const std::function<Result<std::string>()>& work);

// The same for work that leaves a process behind: it has no descriptor of the caller's but the one by which it answers,
// which it is told, and which whoever is left behind must not hold.
Result<std::string> in_clean_worker(const std::function<Result<std::string>(int answer)>& work);

// The same for work that goes on when it has answered, in a process that nobody waits for then. It is an error of the
// answer if nobody is there to take it. `not_held` is closed there; -1: nothing.
using Answer = std::function<Result<void>(const Result<std::string>&)>;
Result<std::string> in_lasting_worker(const std::function<void(const Answer&)>& work, int not_held = -1);

// Lets go of what the process has of its caller: streams, session, working directory, descriptors that were inherited,
// the words of its command line.
Result<void> leave_caller(const char* name);

}  // namespace pinfold
