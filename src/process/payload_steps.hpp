// The last steps of a process on its way to becoming a payload, the container's first one or one of exec; and what each
// of them does, in words.
#pragma once

#include "kernel/terminal.hpp"
#include "process/child_steps.hpp"

namespace pinfold {

// Sizes the terminal, gives it to its user, and sends its master to whom it is for.
Result<void> hand_over_terminal(const Pty& pty, uid_t owner, const PayloadSetup& setup, ChildSide& handshake);

// The security modules' part: what the next execve changes to. While the host's /proc is in reach.
Result<void> set_apparmor_for_exec(ChildContext& context);
Actions tell_apparmor(const ChildRequest& request);
Result<void> set_selinux_for_exec(ChildContext& context);
Actions tell_selinux(const ChildRequest& request);

// From root in the container to the payload's user. The bounding set goes while there is CAP_SETPCAP.
Result<void> enter_cwd(ChildContext& context);
Actions tell_cwd(const ChildRequest& request);
Result<void> set_personality(ChildContext& context);
Actions tell_personality(const ChildRequest& request);
Result<void> set_scheduler(ChildContext& context);
Actions tell_scheduler(const ChildRequest& request);
Result<void> set_io_priority(ChildContext& context);
Actions tell_io_priority(const ChildRequest& request);
Result<void> set_memory_policy(ChildContext& context);
Actions tell_memory_policy(const ChildRequest& request);
Result<void> set_rlimits(ChildContext& context);
Actions tell_rlimits(const ChildRequest& request);
Result<void> limit_bounding_set(ChildContext& context);
Actions tell_bounding_set(const ChildRequest& request);
Result<void> change_user(ChildContext& context);
Actions tell_user(const ChildRequest& request);
// As the shell does: a name without a slash is searched in $PATH.
Result<std::string> find_executable(const std::string& name, const std::vector<std::string>& env);
// As the payload's user, who is the one to look for its program.
Result<void> find_program(ChildContext& context);
Actions tell_program(const ChildRequest& request);

// The payload's streams, and an end to what it must not inherit: the parent-death signal, blocked and ignored signals,
// descriptors that leaked to us. They are closed by execve, and with them the channel: that tells the parent that the
// payload runs. Ends logging: standard error is the payload's from here on.
Result<void> drop_inherited(ChildContext& context);
Actions tell_descriptors(const ChildRequest& request);
void reset_signals();
// The payload has those below it.
unsigned first_own_descriptor(const ProcessPlan& process);

// Says on the channel that the rights go next. Who is to be looked at then holds nothing but its streams.
Result<void> announce_ready(ChildContext& context);
Actions tell_ready(const ChildRequest& request);

// A filter goes on last, so that it need not allow what the set-up does. Without no_new_privs it takes CAP_SYS_ADMIN,
// which the capabilities' step may drop: then it comes before that. It is early where others may look at the process
// meanwhile, if it allows all that is left to do.
enum class FilterTime { never, early, before_capabilities, last };
FilterTime filter_time(const ChildRequest& request);

template <FilterTime When>
bool filters(const ChildRequest& request) {
    return filter_time(request) == When;
}

Result<void> load_filter(ChildContext& context);
Actions tell_filter(const ChildRequest& request);
Result<void> forbid_new_privileges(ChildContext& context);
Actions tell_no_new_privileges(const ChildRequest& request);
Result<void> enter_landlock(ChildContext& context);
Actions tell_landlock(const ChildRequest& request);
Result<void> set_capabilities(ChildContext& context);
Actions tell_capabilities(const ChildRequest& request);

// Why execve of a program that was found has failed.
Error execution_error(int code, const std::string& path);
// Returns only on failure.
Error execute(const std::string& path, const std::vector<std::string>& args, const std::vector<std::string>& env);
// The same for the payload. Before, it waits for the receipt, if one is to be read.
Result<void> execute_program(ChildContext& context);
Actions tell_exec(const ChildRequest& request);

// Where others see the process: outside of their sight what a clone inherits, and the rest in what was cloned.
bool inherits_scheduler(const ChildRequest& request);
bool sets_scheduler_inside(const ChildRequest& request);
Result<void> set_inherited_rlimits(ChildContext& context);
Result<void> hide_and_take_streams(ChildContext& context);
Actions tell_streams(const ChildRequest& request);
bool has_start_hooks(const ChildRequest& request);
// What is needed besides the payload's own until all is done.
uint64_t kept_capabilities(const ChildRequest& request);
Result<void> set_waiting_capabilities(ChildContext& context);
Actions tell_waiting_capabilities(const ChildRequest& request);
bool keeps_capabilities(const ChildRequest& request);
Result<void> start_session_inside(ChildContext& context);
Result<void> claim_terminal_inside(ChildContext& context);
Actions tell_claimed_terminal(const ChildRequest& request);

}  // namespace pinfold
