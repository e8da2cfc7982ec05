// One step of a start: traced with --debug, and named in its error.
#pragma once

#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "plan/steps.hpp"

namespace pinfold {

// "mounts[3] /data: ..." already says which step it was; anything else gets the step's name in front.
inline Error in_step(Step step, Error error) {
    if (error.message.starts_with(step_name(step))) return error;
    return std::move(error).within(step_name(step));
}

template <class Action>
auto take_step(Step step, Action&& action) -> decltype(action()) {
    log_debug(step_name(step));
    auto result = std::forward<Action>(action)();
    if (!result) return in_step(step, std::move(result).error());
    return result;
}

}  // namespace pinfold
