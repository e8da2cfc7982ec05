// Runs a filter in userland, so that profiles are tested call by call, without root and without a kernel.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "pinfold/result.hpp"

namespace pinfold::testing {

// The SECCOMP_RET_* value for one call. An instruction that libseccomp does not generate is an error.
Result<uint32_t> evaluate_bpf(std::span<const sock_filter> program, const seccomp_data& call);

// How many instructions that took.
Result<size_t> count_bpf_steps(std::span<const sock_filter> program, const seccomp_data& call);

}  // namespace pinfold::testing
