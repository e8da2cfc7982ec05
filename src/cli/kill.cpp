// pinfold kill.
#include <signal.h>
#include <string.h>

#include <optional>
#include <string_view>

#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "cli/begin.hpp"
#include "cli/verbs.hpp"
#include "plan/plan.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

std::string upper_case(std::string text) {
    for (char& c : text) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return text;
}

// "RTMIN", "RTMIN+3", "RTMAX-1": how a payload that is an init system is told to shut down.
std::optional<int> realtime_signal(std::string_view name) {
    const bool from_below = name.starts_with("RTMIN");
    if (!from_below && !name.starts_with("RTMAX")) return std::nullopt;
    const int base = from_below ? SIGRTMIN : SIGRTMAX;
    if (name.size() == 5) return base;
    if (name[5] != (from_below ? '+' : '-')) return std::nullopt;
    const std::optional<int> distance = parse_number<int>(name.substr(6));
    if (!distance || *distance > SIGRTMAX - SIGRTMIN) return std::nullopt;
    return from_below ? base + *distance : base - *distance;
}

// 9, KILL and SIGKILL are the same.
Result<int> signal_number(const std::string& text) {
    if (const std::optional<int> number = parse_number<int>(text); number && *number >= 0 && *number <= SIGRTMAX) {
        return *number;
    }
    const std::string upper = upper_case(text);
    const std::string_view name = std::string_view(upper).substr(upper.starts_with("SIG") ? 3 : 0);
    for (int number = 1; number < SIGRTMIN; ++number) {
        const char* known = ::sigabbrev_np(number);
        if (known != nullptr && name == known) return number;
    }
    if (const std::optional<int> number = realtime_signal(name)) return *number;
    return plain_error(concat("unknown signal ", quoted(text))).with_hint("a name such as TERM, or a number: kill -l");
}

Error has_ended(const ContainerState& state) {
    return plain_error(concat("container not running: ", quoted(state.record.id), " is stopped"));
}

Result<void> signal_init(const ContainerState& state, int signal) {
    const UniqueFd init = TRY(open_process(state.pid, state.started));
    if (!init || !TRY(send_signal(init.get(), signal))) return has_ended(state);
    if (signal == SIGKILL) thaw_for_kill(state.record.cgroup);
    return {};
}

// Also those that the first process has left behind, so its end is no obstacle.
Result<void> signal_all(const ContainerState& state, int signal) {
    const std::vector<pid_t> processes = TRY(group_processes(state.record.cgroup));
    for (const pid_t pid : processes) {
        if (::kill(pid, signal) != 0 && errno != ESRCH) return errno_error(concat("send signal ", signal, " to ", pid));
    }
    if (signal == SIGKILL) thaw_for_kill(state.record.cgroup);
    return {};
}

// Its first process has its deadline, which it would miss.
Result<void> check_signal(const ContainerState& state, int signal) {
    if (signal != SIGSTOP || !state.record.annotations.contains(kSandboxAnnotation)) return {};
    return plain_error("a sandbox is not stopped by a signal: it would outlive its time")
        .with_hint(concat("pinfold pause ", state.record.id));
}

Result<int> kill_it(const std::string& root, const KillOptions& options, int signal) {
    const ContainerState state = TRY(load_state(root, options.id));
    TRY(check_signal(state, signal));
    if (options.all && state.record.cgroup.exists()) {
        TRY(signal_all(state, signal));
        return 0;
    }
    if (options.all && state.status == Status::stopped) return 0;
    TRY(check_operation(Operation::kill, state));
    TRY(signal_init(state, signal));
    return 0;
}

}  // namespace

Result<int> verb_kill(const KillOptions& options, const CommandLine& line) {
    const int signal = TRY(signal_number(options.signal));
    const AuditEvent event{
        "kill", options.id, "", {{"signal", std::to_string(signal)}, {"all", options.all ? "true" : "false"}}};
    return audited(line, event, [&] { return kill_it(line.global.root, options, signal); });
}

}  // namespace pinfold
