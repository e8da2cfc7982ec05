// Child processes: started, waited for, held by a descriptor.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>
#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// For execve() and its kin: valid as long as the texts are.
std::vector<char*> pointers(const std::vector<std::string>& texts);

// A program that is looked for in PATH, with our environment. Its output and errors go to `output`; -1: to ours.
Result<pid_t> spawn(const std::vector<std::string>& words, int output = -1);

// Empty, with errno, if there is no such process.
UniqueFd open_pidfd(pid_t pid);

// Waits for a child of ours, and gives its exit code. 0 where the kernel has reaped it, as it does for whoever ignores
// SIGCHLD.
int reap(pid_t pid);

struct ChildEnd {
    siginfo_t how;
    rusage usage;  // of the child and of those that it had waited for
};

// The same for a child that is held, and that somebody else must not have reaped.
Result<ChildEnd> reap_held(int pidfd);

// The status of an exit, 128 + n for death by signal n.
int exit_code_of(const siginfo_t& end);

}  // namespace pinfold
