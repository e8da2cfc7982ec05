// How much a copy may amount to. Both sides count for themselves: neither believes the other.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "pinfold/result.hpp"

namespace pinfold {

struct CopyLimits {
    uint64_t bytes = uint64_t{1} << 30;
    uint64_t files = 100'000;  // directories and links among them
    // On the way out: whether a link may lead out of the copied tree, where a reader would find files of the host.
    bool outward_links = false;
    bool by_option = false;  // whoever called can raise them, by --max-size and --max-files
};

// What all copies of one caller have in common: none of them replaces what another one has just made, and all have to
// be made by then.
struct CopySession {
    int64_t deadline = INT64_MAX;              // of the monotonic clock
    int interrupt = -1;                        // they end once there is something to read from it
    std::set<std::pair<dev_t, ino_t>> made{};  // files, links, directories
};

struct CopySummary {
    uint64_t bytes = 0;
    uint64_t files = 0;
};

// Each level of a tree costs both sides a few descriptors.
inline constexpr unsigned kMaxCopyDepth = 128;

class CopyBudget {
public:
    explicit CopyBudget(const CopyLimits& limits) : limits_(limits) {}

    Result<void> add_file(unsigned depth);
    Result<void> add_bytes(uint64_t count);

    // Of a link in a directory that is this deep in the tree ...
    Result<void> allow_link(std::string_view target, unsigned depth) const;
    // ... or that leads out of it, for another reason than its words.
    Result<void> allow_outward(std::string_view target) const;

    const CopySummary& used() const { return used_; }

private:
    CopyLimits limits_;
    CopySummary used_;
};

}  // namespace pinfold
