// Whether a filter keeps a program from making user namespaces, in which it would have every capability; and one that
// does nothing else.
#pragma once

#include <linux/filter.h>

#include <span>
#include <string_view>

#include "pinfold/spec.hpp"

namespace pinfold {

// Nothing but new user namespaces is denied by it, with the call that could hide them, and to join one.
Seccomp profile_without_user_namespaces();

// In each of the machine's ways to make system calls; false where these are not known. What somebody else decides on
// (a listener, a tracer) is not denied.
bool denies_user_namespaces(std::span<const sock_filter> program);
bool denies_clone3(std::span<const sock_filter> program);

}  // namespace pinfold
