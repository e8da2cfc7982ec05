// A profile (linux.seccomp) to a BPF program. Done in the parent: libseccomp allocates, the child must not.
#pragma once

#include <linux/filter.h>

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

struct SeccompFilter {
    std::vector<sock_filter> program;
    unsigned flags = 0;  // SECCOMP_FILTER_FLAG_*
};

// Names of calls that no architecture has, or that are newer than libseccomp, each once.
std::vector<std::string> unknown_calls(const Seccomp& profile, bool denied_only = false);
// They are left out of the program: a warning where that denies less, else for --debug. Whether or not it was compiled
// before.
void tell_unknown_calls(const Seccomp& profile);

Result<SeccompFilter> compile_seccomp(const Seccomp& profile);
// The same with libseccomp's comparison for each call: what merge_ranges() makes shorter.
Result<SeccompFilter> compile_by_number(const Seccomp& profile);

// Whether there is a listener to hear of calls.
bool has_listener(const Seccomp& profile);

// The SECCOMP_FILTER_FLAG_* for a filter that notifies.
unsigned with_listener(unsigned flags);

// The words of profiles that can be compiled.
struct SeccompWords {
    std::vector<std::string_view> actions;
    std::vector<std::string_view> operators;
    std::vector<std::string_view> flags;
    std::vector<std::string_view> kernel_flags;  // those of the flags that this kernel knows too
};
SeccompWords seccomp_words();
bool knows_seccomp_architecture(std::string_view name);
bool is_native_architecture(std::string_view name);
std::string libseccomp_version();

}  // namespace pinfold
