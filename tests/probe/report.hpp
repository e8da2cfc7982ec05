// The sections of `probe report`, one function each; report.cpp puts them together.
#pragma once

#include "json.hpp"

namespace probe {

// report_identity.cpp: who the process is
Object process_ids();
Object credentials();
Object namespaces();
Object hosts();

// report_privilege.cpp: what it may do
Object capabilities();
Object seccomp();
Object rlimits();
Object keyring();
Object scheduling();

// report_files.cpp: what it can reach
List open_files();
List mounts();
List devices();
List terminals();

// report_kernel.cpp: clocks, interfaces, and files of /proc as they are
Object clocks();
List interfaces();
Object proc_files();

}  // namespace probe
