// A filter as a search over ranges of call numbers that are answered alike.
#include "seccomp/ranges.hpp"

#include <linux/seccomp.h>
#include <seccomp.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "seccomp/backward_writer.hpp"
#include "seccomp/bpf_eval.hpp"

namespace pinfold {

namespace {

using Program = std::vector<sock_filter>;

constexpr size_t kMostCompared = 3;

// Numbers from this one to the next range's, and the instructions that answer them, by their index.
struct Range {
    uint32_t first;
    size_t block;

    bool operator==(const Range&) const = default;
};

// All numbers of one architecture, or of all that are not named.
using Ranges = std::vector<Range>;

struct Blocks {
    std::vector<Program> all;
    std::map<size_t, size_t> by_place;  // in the program that they come from
};

bool is_return(const sock_filter& step) { return step.code == (BPF_RET | BPF_K); }

bool is_conditional(const sock_filter& step) {
    return BPF_CLASS(step.code) == BPF_JMP && step.code != (BPF_JMP | BPF_JA);
}

// All that can be reached from there, in the program's own order. Jumps go forward only.
std::set<size_t> reach(std::span<const sock_filter> program, size_t from) {
    std::set<size_t> found = {from};
    for (auto at = found.begin(); at != found.end() && *at < program.size(); ++at) {
        const sock_filter& step = program[*at];
        if (is_return(step)) continue;
        if (is_conditional(step)) {
            found.insert({*at + 1 + step.jt, *at + 1 + step.jf});
        } else {
            found.insert(*at + 1 + (step.code == (BPF_JMP | BPF_JA) ? size_t{step.k} : 0));
        }
    }
    return found;
}

// Without what lies between. What follows an instruction in the program follows it here, or is reached by a jump.
std::optional<Program> copy_block(std::span<const sock_filter> program, size_t from) {
    const std::set<size_t> found = reach(program, from);
    if (*found.rbegin() >= program.size()) return std::nullopt;
    const std::vector<size_t> places(found.begin(), found.end());
    const auto place_of = [&](size_t old) { return size_t(std::ranges::lower_bound(places, old) - places.begin()); };
    Program block;
    for (const size_t at : places) {
        sock_filter step = program[at];
        const auto distance = [&](size_t old) { return place_of(at + 1 + old) - block.size() - 1; };
        // Nothing else is between an instruction and its successor, so distances only shrink.
        if (step.code == (BPF_JMP | BPF_JA)) step.k = uint32_t(distance(step.k));
        if (is_conditional(step)) {
            step.jt = uint8_t(distance(step.jt));
            step.jf = uint8_t(distance(step.jf));
        }
        block.push_back(step);
    }
    return block;
}

bool same(const Program& one, const Program& other) {
    return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(sock_filter)) == 0;
}

std::optional<size_t> block_at(std::span<const sock_filter> program, size_t place, Blocks& blocks) {
    if (const auto known = blocks.by_place.find(place); known != blocks.by_place.end()) return known->second;
    std::optional<Program> block = copy_block(program, place);
    if (!block) return std::nullopt;
    const auto equal = std::ranges::find_if(blocks.all, [&](const Program& one) { return same(one, *block); });
    const size_t index = size_t(equal - blocks.all.begin());
    if (equal == blocks.all.end()) blocks.all.push_back(std::move(*block));
    blocks.by_place[place] = index;
    return index;
}

// The ranges of all calls of one architecture. Where two neighbours are answered alike, they are one.
std::optional<Ranges> ranges_of(std::span<const sock_filter> program, std::vector<RangeEnd> ends, uint32_t arch,
                                Blocks& blocks) {
    std::erase_if(ends, [&](const RangeEnd& end) { return arch < end.calls.first_arch || arch > end.calls.last_arch; });
    std::ranges::sort(ends, {}, [](const RangeEnd& end) { return end.calls.first_number; });
    Ranges ranges;
    for (const RangeEnd& end : ends) {
        const std::optional<size_t> block = block_at(program, end.at, blocks);
        if (!block) return std::nullopt;
        if (ranges.empty() || ranges.back().block != *block) ranges.push_back({end.calls.first_number, *block});
    }
    return ranges;
}

// Single numbers among others that are answered alike. A comparison each is less than a search, unless there are many.
std::optional<Ranges> few_exceptions(std::span<const Range> ranges, uint64_t end, size_t usual) {
    Ranges exceptions;
    for (size_t i = 0; i < ranges.size(); ++i) {
        if (ranges[i].block == usual) continue;
        const uint64_t next = i + 1 < ranges.size() ? ranges[i + 1].first : end;
        if (next != uint64_t{ranges[i].first} + 1 || exceptions.size() == kMostCompared) return std::nullopt;
        exceptions.push_back(ranges[i]);
    }
    return exceptions;
}

class Writer : public BackwardWriter {
public:
    explicit Writer(const Blocks& blocks) : blocks_(blocks) {}

    // What answers a range is written where it is first needed.
    size_t add_block(size_t index) {
        const auto known = written_.find(index);
        if (known != written_.end()) return known->second;
        return written_[index] = add(blocks_.all[index]);
    }

    // Of numbers that are known to lie in these ranges, the last of which ends before `end`.
    size_t add_search(std::span<const Range> ranges, uint64_t end) {
        if (ranges.size() == 1) return add_block(ranges[0].block);
        for (const Range& usual : ranges.first(2)) {
            if (const auto exceptions = few_exceptions(ranges, end, usual.block)) {
                return add_comparisons(*exceptions, usual.block);
            }
        }
        const size_t middle = ranges.size() / 2;
        const size_t above = add_search(ranges.subspan(middle), end);
        const size_t below = add_search(ranges.first(middle), ranges[middle].first);
        return add_jump(BPF_JGE, ranges[middle].first, above, below);
    }

    size_t add_architecture(const Ranges& ranges) {
        if (ranges.size() == 1) return add_block(ranges[0].block);  // whatever the number is
        add_search(ranges, uint64_t{1} << 32);
        return add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    }

private:
    size_t add_comparisons(const Ranges& exceptions, size_t usual) {
        size_t place = add_block(usual);
        for (const Range& one : exceptions) {
            const size_t exception = add_block(one.block);
            place = add_jump(BPF_JEQ, one.first, exception, place);
        }
        return place;
    }

    const Blocks& blocks_;
    std::map<size_t, size_t> written_;  // blocks, by their index
};

// Architectures that calls are told apart by, this machine's own last.
std::vector<uint32_t> named_architectures(const std::vector<RangeEnd>& ends) {
    std::set<uint32_t> found;
    for (const RangeEnd& end : ends) {
        if (end.calls.first_arch == end.calls.last_arch) found.insert(end.calls.first_arch);
    }
    std::vector<uint32_t> sorted(found.begin(), found.end());
    std::stable_partition(sorted.begin(), sorted.end(), [](uint32_t arch) { return arch != ::seccomp_arch_native(); });
    return sorted;
}

uint32_t any_other(const std::vector<uint32_t>& named) {
    uint32_t arch = 0;
    while (std::ranges::find(named, arch) != named.end()) ++arch;
    return arch;
}

// Where architectures that are not named are told apart nevertheless, it is the proof that fails.
std::optional<Program> search_program(std::span<const sock_filter> program) {
    const std::optional<std::vector<RangeEnd>> ends = ends_of(program);
    if (!ends) return std::nullopt;
    const std::vector<uint32_t> named = named_architectures(*ends);
    Blocks blocks;
    const std::optional<Ranges> others = ranges_of(program, *ends, any_other(named), blocks);
    if (!others) return std::nullopt;
    std::vector<Ranges> ranges;
    for (const uint32_t arch : named) {
        std::optional<Ranges> one = ranges_of(program, *ends, arch, blocks);
        if (!one) return std::nullopt;
        ranges.push_back(std::move(*one));
    }

    Writer writer(blocks);
    // Architectures are compared with one after the other, before any of their numbers.
    std::vector<size_t> places;
    for (const Ranges& one : ranges) places.push_back(writer.add_architecture(one));
    size_t beginning = writer.add_architecture(*others);
    for (size_t i = 0; i < named.size(); ++i) beginning = writer.add_jump(BPF_JEQ, named[i], places[i], beginning);
    writer.add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
    return writer.program();
}

}  // namespace

std::optional<std::vector<sock_filter>> without_unreachable(std::span<const sock_filter> program) {
    return copy_block(program, 0);
}

std::optional<std::vector<sock_filter>> merge_ranges(std::span<const sock_filter> program) {
    std::optional<Program> merged = search_program(program);
    if (!merged || merged->size() >= program.size() || !answer_alike(program, *merged)) return std::nullopt;
    return merged;
}

}  // namespace pinfold
