// Profiles whose denials are seen: what would answer an errno goes to a listener, which answers in its place.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <span>
#include <string>

#include "pinfold/spec.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// Compiles to the same program but for denials, which become notifications; what is allowed costs no more than before.
// ENOSYS stays: that is no denial, it sends a C library to an older call.
Seccomp with_reporting(Seccomp profile);
SeccompFilter with_reporting(SeccompFilter filter);

bool is_reporting(const Seccomp& profile);
Seccomp without_reporting(Seccomp profile);

// For the listener: the errno that the profile's own program, the one without reporting, has for a call.
int denial_errno(std::span<const sock_filter> program, const seccomp_data& call);

// "mount", or the number where libseccomp knows no name. arch is that of seccomp_data.
std::string syscall_name(uint32_t arch, int number);

}  // namespace pinfold
