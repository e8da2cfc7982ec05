// Writes a BPF program from its end to its beginning, so that jumps know how far they lead.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace pinfold {

// A place is counted from the program's end.
class BackwardWriter {
public:
    size_t add(const sock_filter& step);
    size_t add(std::span<const sock_filter> steps);  // in their own order; returns the place of the first
    // To places that may be anywhere behind it. `operation` is one of BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET.
    size_t add_jump(uint16_t operation, uint32_t value, size_t if_true, size_t if_false);

    std::vector<sock_filter> program() const { return {reversed_.rbegin(), reversed_.rend()}; }

private:
    size_t distance_to(size_t place) const { return reversed_.size() - 1 - place; }
    size_t bring_near(size_t place);

    std::vector<sock_filter> reversed_;
    std::map<size_t, size_t> nearer_;  // the last instruction that does the same as one farther away
};

}  // namespace pinfold
