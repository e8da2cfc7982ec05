// Who may call which verb where a policy does not say it.
#include "policy/verbs.hpp"

#include <algorithm>
#include <array>

namespace pinfold {

namespace {

constexpr auto kNames = std::to_array<std::string_view>(
    {"create",  "start", "run",           "exec",          "kill",          "delete",     "state",        "list",
     "ps",      "pause", "resume",        "update",        "events",        "spec",       "features",     "cp",
     "sandbox", "prune", "seccomp show",  "seccomp diff",  "seccomp learn", "audit show", "audit verify", "logs",
     "wait",    "stop",  "template list", "template show", "template add"});

// The first ones above.
constexpr size_t kEngines = 15;

constexpr auto kSafe = std::to_array<std::string_view>(
    {"sandbox",      "exec",  "cp",     "kill",   "delete",        "state",        "list",
     "ps",           "pause", "resume", "events", "prune",         "features",     "seccomp show",
     "seccomp diff", "logs",  "wait",   "stop",   "template list", "template show"});

}  // namespace

std::span<const std::string_view> verb_names() { return kNames; }

bool is_engine_verb(std::string_view verb) {
    const auto engines = std::span(kNames).first<kEngines>();
    return std::ranges::find(engines, verb) != engines.end();
}

bool is_safe_verb(std::string_view verb) { return std::ranges::find(kSafe, verb) != kSafe.end(); }

}  // namespace pinfold
