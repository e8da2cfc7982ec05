// How much a copy may amount to. Both sides count for themselves: neither believes the other.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>

#include "base/strings.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct CopyLimits {
    uint64_t bytes = uint64_t{1} << 30;
    uint64_t files = 100'000;  // directories and links among them
    // On the way out: whether a link may lead out of the copied tree, where a reader would find files of the host.
    bool outward_links = false;
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

    Result<void> add_file(unsigned depth) {
        if (depth > kMaxCopyDepth) {
            return Error{EMLINK, concat("the tree is more than ", kMaxCopyDepth, " directories deep"), {}};
        }
        if (++used_.files <= limits_.files) return {};
        return Error{EMFILE, concat("more than ", limits_.files, " files"), "--max-files raises the limit"};
    }

    Result<void> add_bytes(uint64_t count) {
        if (count <= limits_.bytes - used_.bytes) {
            used_.bytes += count;
            return {};
        }
        return Error{EFBIG, concat("more than ", limits_.bytes, " bytes"), "--max-size raises the limit"};
    }

    const CopySummary& used() const { return used_; }

private:
    CopyLimits limits_;
    CopySummary used_;
};

}  // namespace pinfold
