// A conditional jump leads 255 instructions far. What is farther away is reached by one more instruction.
#include "seccomp/backward_writer.hpp"

namespace pinfold {

namespace {

constexpr size_t kFarthest = 255;

}  // namespace

size_t BackwardWriter::add(const sock_filter& step) {
    reversed_.push_back(step);
    return reversed_.size() - 1;
}

size_t BackwardWriter::add(std::span<const sock_filter> steps) {
    reversed_.insert(reversed_.end(), steps.rbegin(), steps.rend());
    return reversed_.size() - 1;
}

size_t BackwardWriter::add_jump(uint16_t operation, uint32_t value, size_t if_true, size_t if_false) {
    if_true = bring_near(if_true);
    if_false = bring_near(if_false);
    return add(
        {uint16_t(BPF_JMP | operation | BPF_K), uint8_t(distance_to(if_true)), uint8_t(distance_to(if_false)), value});
}

// Two of these instructions may come before the jump.
size_t BackwardWriter::bring_near(size_t place) {
    const auto known = nearer_.find(place);
    const size_t nearest = known == nearer_.end() ? place : known->second;
    if (distance_to(nearest) + 2 <= kFarthest) return nearest;
    const bool is_return = reversed_[nearest].code == (BPF_RET | BPF_K);
    const sock_filter on = BPF_STMT(BPF_JMP | BPF_JA, uint32_t(distance_to(nearest)));
    // The next who need it are nearer to this one.
    return nearer_[place] = add(is_return ? sock_filter(reversed_[nearest]) : on);
}

}  // namespace pinfold
