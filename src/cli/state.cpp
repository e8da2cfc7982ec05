// pinfold state.
#include <cstdio>

#include "cli/verbs.hpp"
#include "state/container_id.hpp"
#include "state/record.hpp"
#include "state/store.hpp"

namespace pinfold {

Result<int> verb_state(const StateOptions& options, const CommandLine& line) {
    TRY(check_container_id(options.id));
    const std::string text = state_to_json(TRY(load_state(line.global.root, options.id)));
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) return errno_error("print the state");
    return 0;
}

}  // namespace pinfold
