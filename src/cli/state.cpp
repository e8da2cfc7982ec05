// pinfold state.
#include "cli/verbs.hpp"
#include "state/record.hpp"
#include "state/store.hpp"

namespace pinfold {

Result<int> verb_state(const std::string& id, const CommandLine& line) {
    const ContainerState state = TRY(load_state(line.global.root, id));
    TRY(print(state_to_json(state)));
    return 0;
}

}  // namespace pinfold
