// Who may call which verb where a policy does not say it.
#pragma once

#include <span>
#include <string_view>

namespace pinfold {

std::span<const std::string_view> verb_names();

// What engines call, by root's rights and with directories of their own: whoever may create a container from any
// configuration may do anything, so that a policy has nothing to add. Others than engines, by sudo(8), are bound in
// these verbs, too.
bool is_engine_verb(std::string_view verb);

// What may be called by sudo(8): sandboxes, and what can be done with one.
bool is_safe_verb(std::string_view verb);

}  // namespace pinfold
