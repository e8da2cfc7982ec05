// The extra process of a start that joins namespaces or shifts clocks.
#include "process/joiner.hpp"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "process/entry.hpp"
#include "process/step.hpp"

namespace pinfold {

namespace {

// PR_SET_DUMPABLE keeps the processes that live in these namespaces from tracing us or opening our descriptors
// meanwhile (CVE-2016-9962).
Result<void> join(const std::vector<OpenedNamespace>& namespaces, bool joins_user) {
    if (namespaces.empty()) return {};
    if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error("set dumpable");
    // The caller's groups would stay with the payload if the namespace denies setgroups. A normal user cannot drop
    // them.
    if (joins_user && ::setgroups(0, nullptr) != 0 && errno != EPERM) return errno_error("drop the caller's groups");
    TRY(join_namespaces(namespaces));
    if (joins_user) TRY(become_namespace_root({}));
    return {};
}

// Who we are: the caller, or root in a user namespace of our own; then a member of the joined namespaces.
Result<void> enter(const Plan& plan, const std::vector<OpenedNamespace>& namespaces, const Channel& channel) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    if (plan.namespaces.user_before_time) {
        // The parent has written our id maps by the time it says go.
        if (!TRY(channel.receive())) return plain_error("the parent is gone");
    }
    const bool joins_user = plan.namespaces.joins(CLONE_NEWUSER);
    // A process that is not dumpable may not open its own files in /proc, unless it is root: so clocks come first,
    // except where it takes the rights of the joined user namespace.
    const bool clocks_first = plan.namespaces.create_time && !joins_user;
    if (clocks_first) TRY(create_time_namespace(plan.namespaces.clock_offsets));
    TRY(join(namespaces, joins_user));
    if (plan.namespaces.create_time && !clocks_first) TRY(create_time_namespace(plan.namespaces.clock_offsets));
    return {};
}

// Not ours to join: what we clone is still to be set up, and not to be seen by those who live there.
UniqueFd take_pid_namespace(std::vector<OpenedNamespace>& namespaces) {
    const auto pid = std::ranges::find(namespaces, uint64_t{CLONE_NEWPID}, &OpenedNamespace::flag);
    if (pid == namespaces.end()) return {};
    UniqueFd taken = std::move(pid->fd);
    namespaces.erase(pid);
    return taken;
}

}  // namespace

void run_joiner(const Plan& plan, std::vector<OpenedNamespace> namespaces, InitContext context) {
    uint64_t flags = plan.namespaces.create;
    if (plan.namespaces.user_before_time) flags &= ~uint64_t{CLONE_NEWUSER};
    context.pid_namespace = take_pid_namespace(namespaces);
    const Result<void> cloned = take_step(Step::clone, [&]() -> Result<void> {
        TRY(enter(plan, namespaces, context.channel));
        return clone_as_sibling(flags, context.channel, [&] { run_init(plan, std::move(context)); });
    });
    if (!cloned) context.channel.send_failure(cloned.error());
    ::_exit(0);
}

}  // namespace pinfold
