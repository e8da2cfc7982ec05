// pinfold delete.
#include "cli/begin.hpp"
#include "cli/verbs.hpp"
#include "process/lifetime.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

// What a create left that was killed, once nothing of it lives.
bool is_leftover(const ContainerState& state) { return state.status == Status::creating && state.pid == 0; }

Result<void> remove_it(const std::string& root, const DeleteOptions& options) {
    const StateLock lock = TRY(StateLock::take(root, options.id));
    const ContainerState state = TRY(load_for_delete(root, options.id, options.force));
    if (!options.force && !is_leftover(state)) TRY(check_operation(Operation::remove, state));
    return destroy_container(root, state);
}

Result<int> delete_it(const std::string& root, const DeleteOptions& options) {
    Result<void> removed = remove_it(root, options);
    // Engines tidy up by a forced delete, whether or not there is something to tidy.
    const bool done = removed || (options.force && removed.error().code == kNoSuchContainer);
    if (!done) return std::move(removed).error();
    return 0;
}

}  // namespace

Result<int> verb_delete(const DeleteOptions& options, const CommandLine& line) {
    const AuditEvent event{"delete", options.id, "", {{"force", options.force ? "true" : "false"}}};
    return audited(line, event, [&] { return delete_it(line.global.root, options); });
}

}  // namespace pinfold
