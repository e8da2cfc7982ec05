// What a container or a verb prints, and what of it can be compared from run to run.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "pinfold/unique_fd.hpp"

namespace pinfold::faults {

using nlohmann::json;
using pinfold::UniqueFd;

class Output {
public:
    Output() = default;  // of nobody
    explicit Output(UniqueFd terminal) : reader_(std::move(terminal)) {}
    static Output through_pipe();
    static Output through_terminal();

    int writer() const { return writer_.get(); }
    void close_writer() { writer_.reset(); }
    // All that comes until there is this line, or nobody is left to write; false when neither happens in time.
    bool await(const std::string& line);
    bool await_end() { return await(""); }
    // What is there by now.
    const std::string& text();

private:
    // Takes what is there; false at the end.
    bool drain();

    UniqueFd reader_;
    UniqueFd writer_;
    std::string text_;
};

// The probe's answers, one to a line, without what differs each time: numbers of namespaces, mounts, pipes.
json comparable(const std::string& lines);

// Whether the answers are the learnt ones, as far as they go.
bool begins(const json& learnt, const json& answers);

}  // namespace pinfold::faults
