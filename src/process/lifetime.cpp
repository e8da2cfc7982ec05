// What happens to a container that exists: its start and its end.
#include "process/lifetime.hpp"

#include <signal.h>

#include <cerrno>

#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "process/handshake.hpp"
#include "process/hooks.hpp"
#include "process/host_steps.hpp"
#include "process/supervise.hpp"
#include "spec/parse.hpp"

namespace pinfold {

namespace {

Result<Spec> load_spec(const std::string& root, const std::string& id) {
    const std::string text = TRY(load_config_text(root, id));
    return parse_checked_config(text);
}

// What was planned when the container was created, as far as a receipt tells it.
// Of its groups and their limits that is in the state, with what has changed since.
Result<Plan> plan_again(Spec spec, const ContainerRecord& record) {
    const HostFacts facts = TRY(gather_host_facts());
    PlanOptions options{.id = record.id, .bundle = record.bundle};
    if (record.limits) {
        spec.linux_.resources = {};
        spec.linux_.cgroups_path.clear();
        options.cgroup_manager = CgroupManager::disabled;
    }
    Plan plan = TRY(make_plan(spec, options, facts));
    plan.cgroup.place = record.cgroup;
    if (!record.limits) return plan;
    plan.cgroup.writes = record.limits->v2;
    plan.cgroup.v1_writes = record.limits->v1;
    return plan;
}

Result<void> run_payload(const std::string& root, const ContainerState& state, const ReceiptHandler& on_receipt,
                         const SignalForwarder& signals) {
    const std::string& id = state.record.id;
    Result<UniqueFd> connection = connect_to_start(root, id);
    if (!connection && connection.error().code == ECONNREFUSED) {
        return plain_error(concat("container not running: the first process of ", quoted(id), " has ended"));
    }
    ParentSide handshake = ParentSide::of_created(TRY(std::move(connection)));
    handshake.give_up_at(-1, signals.fd());
    TRY(forget_start_socket(root, id));  // from here on it counts as running, whatever becomes of us
    const UniqueFd init = TRY(open_process(state.pid, state.started));
    const auto on_listener = [&](UniqueFd listener) -> Result<UniqueFd> {
        const Spec spec = TRY(load_spec(root, id));
        TRY(send_listener(listener.get(), state, state.pid, *spec.linux_.seccomp));
        return UniqueFd();
    };
    const auto read = [&]() -> Result<Receipt> {
        Spec spec = TRY(load_spec(root, id));
        return read_receipt(TRY(plan_again(std::move(spec), state.record)), state.pid);
    };
    const ContainerRecord& record = state.record;
    TRY(handshake.payload({state.pid, init.get(), on_listener, read, on_receipt, record.listens, record.pauses}));
    log_debug("exec");
    if (!state.record.poststart_hooks) return {};
    const Spec spec = TRY(load_spec(root, id));
    return run_hooks("poststart", spec.hooks.poststart, hook_state(state.record, Status::running, state.pid),
                     signals.fd());
}

// Before its first process was recorded, a container had not yet won its group: another's processes may be in it.
Result<void> remove_group(const ContainerState& state) {
    const ContainerRecord& record = state.record;
    TRY(require_cgroup_mounts(record.cgroup));
    if (state.had_init) return remove_cgroup(record.cgroup);
    const Result<void> removed = remove_empty_cgroup(record.cgroup);
    if (!removed) log_warning(concat(removed.error().message, "; it is left alone"));
    return {};
}

}  // namespace

Result<void> start_container(const std::string& root, const ContainerState& state, const ReceiptHandler& on_receipt) {
    const SignalForwarder signals = TRY(SignalForwarder::create());
    Result<void> started = run_payload(root, state, on_receipt, signals);
    if (started) return {};
    if (const Result<void> destroyed = destroy_container(root, state); !destroyed) {
        log_warning(destroyed.error().message);
    }
    return started;
}

Result<void> kill_container(const ContainerState& state) {
    const UniqueFd init = TRY(open_process(state.pid, state.started));
    if (!init) return {};
    if (!TRY(send_signal(init.get(), SIGKILL))) return {};
    if (state.record.cgroup.exists())
        kill_group(state.record.cgroup);  // among them who traces it, and does not reap it
    thaw_for_kill(state.record.cgroup);
    return await_end(init.get());
}

Result<void> destroy_container(const std::string& root, const ContainerState& state) {
    std::vector<Hook> poststop;
    if (state.record.poststop_hooks) {
        Result<Spec> spec = load_spec(root, state.record.id);
        if (spec) poststop = std::move(spec->hooks.poststop);
        else log_warning(concat("poststop hooks: ", spec.error().message));
    }
    const SignalForwarder signals = TRY(SignalForwarder::create());  // not half of it
    TRY(kill_container(state));
    TRY(remove_group(state));
    TRY(remove_state(root, state.record.id));
    if (!poststop.empty()) run_poststop_hooks(poststop, hook_state(state.record, Status::stopped), signals.fd());
    return {};
}

}  // namespace pinfold
