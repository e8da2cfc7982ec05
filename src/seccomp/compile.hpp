// A profile (linux.seccomp) to a BPF program. Done in the parent: libseccomp allocates, the child must not.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

struct SeccompFilter {
    std::vector<sock_filter> program;
    unsigned flags = 0;  // SECCOMP_FILTER_FLAG_*
};

Result<SeccompFilter> compile_seccomp(const Seccomp& profile);

}  // namespace pinfold
