// pinfold delete: processes, cgroup, state, in this order, so that an interrupted delete can be repeated.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cli/verbs.hpp"
#include "pinfold/unique_fd.hpp"
#include "state/container_id.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

constexpr int kKillDeadline = 10'000;  // ms; a process in uninterruptible sleep can outlive SIGKILL for a while

Result<void> kill_init(const ContainerState& state, const std::string& root) {
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, state.pid, 0)));
    if (!pidfd && errno == ESRCH) return {};
    if (!pidfd) return errno_error(concat("open process ", state.pid));
    // The pidfd holds the process; only now is it certain that the pid was not reused before.
    if (TRY(load_state(root, state.record.id)).pid != state.pid) return {};
    if (::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0) != 0 && errno != ESRCH)
        return errno_error("kill");
    pollfd ended{pidfd.get(), POLLIN, 0};
    if (::poll(&ended, 1, kKillDeadline) == 1) return {};
    return plain_error(concat("process ", state.pid, " did not end within 10 s of SIGKILL"));
}

}  // namespace

Result<int> verb_delete(const DeleteOptions& options, const CommandLine& line) {
    TRY(check_container_id(options.id));
    const std::string& root = line.global.root;
    const Result<ContainerState> state = load_state(root, options.id);
    if (!state && options.force && state.error().code == 0) return 0;
    if (!state) return Error(state.error());
    if (state->status == Status::running) {
        if (!options.force) {
            return plain_error(concat("container ", quoted(options.id), " is running"))
                .with_hint("stop it first, or use --force");
        }
        TRY(kill_init(*state, root));
    }
    if (!state->record.cgroup_path.empty()) TRY(remove_cgroup(state->record.cgroup_mount, state->record.cgroup_path));
    TRY(remove_state(root, options.id));
    return 0;
}

}  // namespace pinfold
