// Changed inputs: the same ones for the same seed, on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>

namespace pinfold::fuzz {

class Mutator {
public:
    // Of inputs that are good, and of which there is at least one.
    Mutator(std::span<const std::string> inputs, uint32_t seed) : inputs_(inputs), random_(seed) {}

    std::string next();

private:
    size_t below(size_t limit) { return limit == 0 ? 0 : random_() % limit; }
    void change(std::string& text);
    std::string_view slice_of(const std::string& text);

    std::span<const std::string> inputs_;
    std::mt19937 random_;  // its numbers are prescribed, those of the distributions are not
};

}  // namespace pinfold::fuzz
