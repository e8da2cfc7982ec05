// libseccomp compares with one call number after the other. Most neighbours are answered alike: a search over ranges of
// them is a third as long, and the kernel, which checks, translates and tries a program when it is loaded, is faster.
#pragma once

#include <linux/filter.h>

#include <optional>
#include <span>
#include <vector>

namespace pinfold {

// The same program without what no call comes to. Empty where it does not end.
std::optional<std::vector<sock_filter>> without_unreachable(std::span<const sock_filter> program);

// A program that answers as this one does, which is proven before it is returned. Empty where there is none that is
// shorter, or the proof fails.
std::optional<std::vector<sock_filter>> merge_ranges(std::span<const sock_filter> program);

}  // namespace pinfold
