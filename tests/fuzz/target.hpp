// A fuzzer's target: a function that takes any bytes. It throws Broken where something that must hold does not; what
// breaks memory or never ends is for its caller to see.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>

#include "json/json.hpp"
#include "pinfold/result.hpp"
#include "spec/reader.hpp"

namespace pinfold::fuzz {

struct Target {
    std::string_view name;  // also of its corpus
    void (*try_input)(std::string_view input);
    int mutations;  // as many as take a second or two
};

std::span<const Target> targets();

struct Broken : std::logic_error {
    using std::logic_error::logic_error;
};

inline void must_hold(bool condition, const char* what) {
    if (!condition) throw Broken(what);
}

// One clear sentence, or several lines of them, that a terminal can print.
void check_refusal(const Error& error);
// At least one, each with a message and, unless it is about the whole document, with its path.
void check_problems(const Problems& problems, const Json& document);

// Nothing where it is no JSON. What is JSON stays the same when it is printed and read again.
std::optional<Json> read_document(std::string_view input);

void try_config(std::string_view input);
void try_process(std::string_view input);
void try_resources(std::string_view input);
void try_limits(std::string_view input);
void try_policy(std::string_view input);
void try_result(std::string_view input);
void try_state(std::string_view input);
void try_seccomp(std::string_view input);
void try_bpf(std::string_view input);
void try_words(std::string_view input);
void try_audit(std::string_view input);
void try_copy(std::string_view input);

}  // namespace pinfold::fuzz
