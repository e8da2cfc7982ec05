// pinfold delete.
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cli/begin.hpp"
#include "cli/verbs.hpp"
#include "process/lifetime.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

// What a create left that was killed, once nothing of it lives.
bool is_leftover(const ContainerState& state) { return state.status == Status::creating && state.pid == 0; }

// One that is still being made is its maker's to end.
void kill_by_force(const std::string& root, const std::string& id) {
    const Result<ContainerState> state = load_state(root, id);
    if (!state || state->status == Status::creating) return;
    if (const Result<void> killed = kill_container(*state); !killed) log_warning(killed.error().message);
}

// A sandbox has a verb of its own for it.
std::string how_to_end(const ContainerRecord& record) {
    const bool is_sandbox = record.annotations.contains(kSandboxAnnotation);
    return is_sandbox ? concat("pinfold stop ", record.id) : concat("pinfold kill ", record.id, " KILL");
}

Result<void> check_may_go(const ContainerState& state) {
    if (is_leftover(state)) return {};
    Result<void> legal = check_operation(Operation::remove, state);
    if (legal || !legal.error().hint.empty()) return legal;
    return std::move(legal).error().with_hint(
        concat("end it first, by ", how_to_end(state.record), ", or use --force"));
}

Result<void> remove_it(const std::string& root, const DeleteOptions& options) {
    if (options.force) kill_by_force(root, options.id);
    const StateLock lock = TRY(StateLock::take(root, options.id));
    const ContainerState state = TRY(load_for_delete(root, options.id, options.force));
    if (!options.force) TRY(check_may_go(state));
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
