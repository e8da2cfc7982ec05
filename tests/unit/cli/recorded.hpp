// Verbs that remember what the command line has handed them, in the place of those that carry it out.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/verbs.hpp"

namespace pinfold::testing {

// What the last call of a verb with these options got.
template <class Options>
std::optional<Options>& recorded() {
    static std::optional<Options> options;
    return options;
}

// The words after "pinfold", parsed.
class Parsed {
public:
    explicit Parsed(std::vector<std::string> words);
    Parsed(const Parsed&) = delete;
    Parsed& operator=(const Parsed&) = delete;

    // The options of the verb, which is called for them.
    template <class Options>
    const Options& options() {
        recorded<Options>().reset();
        call();
        return recorded<Options>().value();
    }

    // What is wrong with the words.
    Error mistake() const;

    std::optional<int> exit_code;  // nothing: there is a verb to be called
    CommandLine line;
    std::string out;
    std::string err;

private:
    void call() const;

    std::vector<std::string> words_;
    std::vector<char*> argv_;
};

}  // namespace pinfold::testing
