// Runs a filter in userland: what the kernel would answer to a call, without making it.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace pinfold {

// The SECCOMP_RET_* value with its data. A program that is not made of libseccomp's instructions, or does not come to
// an end, kills. steps, where given, receives the number of instructions that were run.
uint32_t evaluate(std::span<const sock_filter> program, const seccomp_data& call, size_t* steps = nullptr);

}  // namespace pinfold
