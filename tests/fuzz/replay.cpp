// Every input of the corpora, and a number of changed ones, through the fuzzers' targets.
#include <ctime>
#include <filesystem>
#include <map>

#include "base/fs.hpp"
#include "fuzz/mutate.hpp"
#include "fuzz/target.hpp"
#include "support/testing.hpp"
#include "support/tried.hpp"

using namespace pinfold;
using namespace pinfold::fuzz;

namespace {

constexpr double kMostSeconds = 5;  // of the processor: how busy the machine is does not matter

std::map<std::string, std::string> corpus_of(const Target& target) {
    std::map<std::string, std::string> inputs;
    const std::filesystem::path dir = std::filesystem::path(CORPORA) / target.name;
    for (const auto& entry : std::filesystem::directory_iterator(dir)) {
        inputs[entry.path().filename()] = read_file(entry.path()).value();
    }
    return inputs;
}

double seconds_used() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Empty: nothing is wrong.
std::string fault_of(const Target& target, const std::string& input) {
    const double before = seconds_used();
    try {
        target.try_input(input);
    } catch (const Broken& broken) {
        return broken.what();
    }
    return seconds_used() - before > kMostSeconds ? "takes too long" : "";
}

void try_one(const Target& target, const std::string& input) {
    const std::string fault = fault_of(target, input);
    testing::count_tried("inputs", fault.empty());
    CHECK_MESSAGE(fault.empty(), fault, ": ", input.substr(0, 4096));
}

}  // namespace

TEST_CASE("fuzz: every input of the corpora is taken or refused, and breaks nothing") {
    for (const Target& target : targets()) {
        const std::string name(target.name);
        CAPTURE(name);
        const std::map<std::string, std::string> corpus = corpus_of(target);
        CHECK_FALSE(corpus.empty());
        for (const auto& entry : corpus) {
            const std::string& file = entry.first;  // clang 14 captures no structured binding
            CAPTURE(file);
            try_one(target, entry.second);
        }
    }
}

TEST_CASE("fuzz: nor does an input that was changed at random") {
    for (const Target& target : targets()) {
        const std::string name(target.name);
        CAPTURE(name);
        std::vector<std::string> inputs;
        for (const auto& [file, input] : corpus_of(target)) inputs.push_back(input);
        Mutator mutator(inputs, 1);
        for (int i = 0; i < target.mutations; ++i) {
            CAPTURE(i);
            try_one(target, mutator.next());
        }
    }
}
