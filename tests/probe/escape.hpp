// Ways out of a container, tried one by one. Each is made so that it does no harm where it succeeds: files are opened
// and not written, calls are given what changes nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace probe {

// What an attempt answers where there is nothing to attack.
inline constexpr long kAbsent = -2;

struct Attempt {
    std::string name;
    std::function<long()> run;       // negative with errno set: it failed
    std::vector<int> refusals = {};  // errors that mean "stopped", besides EPERM, EACCES and ENOSYS
};

using Attempts = std::vector<Attempt>;

Attempts kernel_attempts();     // escape_kernel.cpp
Attempts namespace_attempts();  // escape_namespaces.cpp
Attempts process_attempts();    // escape_processes.cpp
Attempts file_attempts();       // escape_files.cpp
Attempts device_attempts();     // escape_files.cpp
Attempts socket_attempts();     // escape_sockets.cpp
Attempts terminal_attempts();   // escape_sockets.cpp

// By numbers and instructions of other interfaces, which may cost the caller's life.
Attempts x32_attempts();    // escape_abi.cpp
Attempts int80_attempts();  // escape_abi.cpp

// For what changes the process itself: in a child, or here where no child can be made.
long in_child(const std::function<long()>& run);

// Success that is none: it was done, and led nowhere.
long confined();

}  // namespace probe
