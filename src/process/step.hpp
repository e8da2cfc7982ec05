// One step of a start: a line of the parent's list (parent_steps) or of the child's (child_steps). Who takes the steps
// and who tells of them (--dry-run, --debug, errors) read the same lists, so that none can lie about another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

using Actions = std::vector<std::string>;

template <class Request, class Context>
struct Step {
    const char* name;  // also of the benchmark's breakdown
    bool (*is_asked_for)(const Request&);
    Result<void> (*take)(Context&);
    Actions (*tell)(const Request&);  // what it does, in words
};

// "mounts[3] /data: ..." already says which step it was; anything else gets the step's name in front.
Error in_step(const char* name, Error error);

template <class Action>
auto take_step(const char* name, Action&& action) -> decltype(action()) {
    log_debug(name);
    auto result = std::forward<Action>(action)();
    if (!result) return in_step(name, std::move(result).error());
    return result;
}

template <class Steps, class Request, class Context>
Result<void> take_steps(const Steps& steps, const Request& request, Context& context) {
    for (const auto& step : steps) {
        if (step.is_asked_for(request)) TRY(take_step(step.name, [&] { return step.take(context); }));
    }
    return {};
}

struct ToldStep {
    const char* name;
    const char* by;
    Actions actions;
};

template <class Steps, class Request>
void tell_steps(const Steps& steps, const Request& request, const char* by, std::vector<ToldStep>& told) {
    for (const auto& step : steps) {
        if (step.is_asked_for(request)) told.push_back({step.name, by, step.tell(request)});
    }
}

// Whether a part of a plan asks for anything.
template <class Part>
bool is_set(const Part& part) {
    if constexpr (requires { part.has_value(); }) return part.has_value();
    else if constexpr (requires { part.empty(); }) return !part.empty();
    else return static_cast<bool>(part);
}

std::string hex(uint64_t value);    // 16 digits
std::string octal(unsigned value);  // 4 digits at least

template <class Items, class Words>
Actions each(const Items& items, Words words) {
    Actions actions;
    for (const auto& item : items) actions.push_back(words(item));
    return actions;
}

}  // namespace pinfold
