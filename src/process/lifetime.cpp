// What happens to a container that exists: its start and its end.
#include "process/lifetime.hpp"

#include <signal.h>

#include <cerrno>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/freeze.hpp"
#include "kernel/init_process.hpp"
#include "process/child.hpp"
#include "process/hooks.hpp"
#include "spec/load.hpp"
#include "state/record.hpp"

namespace pinfold {

namespace {

Result<Hooks> load_hooks(const std::string& root, const std::string& id) {
    const std::string text = TRY(load_config_text(root, id));
    return TRY(parse_checked_config(text)).hooks;
}

Result<void> run_payload(const std::string& root, const ContainerState& state) {
    const std::string& id = state.record.id;
    Result<UniqueFd> connection = connect_to_start(root, id);
    if (!connection && connection.error().code == ECONNREFUSED) {
        return plain_error(concat("container not running: the first process of ", quoted(id), " has ended"));
    }
    const Channel channel(TRY(std::move(connection)));
    forget_start_socket(root, id);  // from here on it counts as running, whatever becomes of us
    TRY(await_payload(channel, false));
    if (!state.record.poststart_hooks) return {};
    ContainerState running = state;
    running.status = Status::running;
    const Hooks hooks = TRY(load_hooks(root, id));
    return run_hooks("poststart", hooks.poststart, state_to_json(running));
}

Result<void> kill_init(const ContainerState& state) {
    const UniqueFd init = TRY(open_process(state.pid, state.started));
    if (!init) return {};
    if (!TRY(send_signal(init.get(), SIGKILL))) return {};
    let_die(state.record.cgroup);
    return await_end(init.get());
}

// Before its first process was recorded, a container had not yet won its group: another's processes may be in it.
Result<void> remove_group(const ContainerState& state) {
    const ContainerRecord& record = state.record;
    if (state.had_init) return remove_cgroup(record.cgroup);
    const Result<void> removed = remove_empty_cgroup(record.cgroup);
    if (!removed) log_warning(concat(removed.error().message, "; it is left alone"));
    return {};
}

}  // namespace

Result<void> start_container(const std::string& root, const ContainerState& state) {
    Result<void> started = run_payload(root, state);
    if (started) return {};
    if (const Result<void> destroyed = destroy_container(root, state); !destroyed) {
        log_warning(destroyed.error().message);
    }
    return started;
}

Result<void> destroy_container(const std::string& root, const ContainerState& state) {
    std::vector<Hook> poststop;
    if (state.record.poststop_hooks) {
        Result<Hooks> hooks = load_hooks(root, state.record.id);
        if (hooks) poststop = std::move(hooks->poststop);
        else log_warning(concat("poststop hooks: ", hooks.error().message));
    }
    TRY(kill_init(state));
    TRY(remove_group(state));
    TRY(remove_state(root, state.record.id));
    if (!poststop.empty())
        run_poststop_hooks(poststop, state_to_json({.record = state.record, .status = Status::stopped}));
    return {};
}

}  // namespace pinfold
