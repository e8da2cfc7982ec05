// pinfold list.
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "plan/plan.hpp"
#include "policy/gate.hpp"
#include "sandbox/monitor.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

using Row = std::vector<std::string>;

// A container, and what is known of it where it is a sandbox.
struct Entry {
    ContainerState state;
    std::optional<SandboxView> view;
};

// "5s", "3m", "2h", "4d" since that time (RFC 3339).
std::string age_of(const std::string& created) {
    tm parts{};
    if (::strptime(created.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr) return "-";
    const int64_t age = std::max<int64_t>(::time(nullptr) - ::timegm(&parts), 0);
    if (age < 60) return concat(age, 's');
    if (age < 3600) return concat(age / 60, 'm');
    constexpr int64_t kHour = 3600, kDay = 24 * kHour;
    return age < 2 * kDay ? concat(age / kHour, 'h') : concat(age / kDay, 'd');
}

std::string share(const std::optional<uint64_t>& used, const std::optional<uint64_t>& limit, uint64_t unit,
                  const char* name) {
    if (!used) return "-";
    return concat(*used / unit, limit ? concat('/', *limit / unit) : "", name);
}

std::string end_of(const std::optional<SandboxEnd>& end) {
    if (!end) return "-";
    const SandboxResult& result = end->result;
    const std::string how = result.signal ? concat("signal ", *result.signal) : concat("exit ", exit_code_of(result));
    return result.stopped_by.empty() ? how : concat(how, ", ", result.stopped_by);
}

Row row_of(const Entry& entry, bool any_sandbox) {
    const ContainerRecord& record = entry.state.record;
    Row row = {record.id,
               std::to_string(entry.state.pid),
               status_name(entry.state.status),
               printable(record.bundle),
               printable(record.created),
               concat("#", record.owner)};
    if (!any_sandbox) return row;
    const SandboxView view = entry.view.value_or(SandboxView());
    const std::string command = printable(join(view.command, " "));
    row.insert(row.end(),
               {age_of(record.created), share(view.memory, view.memory_limit, 1 << 20, "M"),
                share(view.processes, view.process_limit, 1, ""), end_of(view.end), command.empty() ? "-" : command});
    return row;
}

// What only sandboxes have follows, where there is one.
std::string table(const std::vector<Entry>& entries) {
    const bool any = std::ranges::any_of(entries, [](const Entry& entry) { return entry.view.has_value(); });
    std::vector<Row> rows = {{"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"}};
    if (any) rows[0].insert(rows[0].end(), {"AGE", "MEMORY", "PIDS", "END", "COMMAND"});
    for (const Entry& entry : entries) rows.push_back(row_of(entry, any));
    return in_columns(rows);
}

std::string ids(const std::vector<ContainerState>& states) {
    std::string text;
    for (const ContainerState& state : states) text += state.record.id + "\n";
    return text;
}

std::string json(const std::vector<Entry>& entries) {
    if (entries.empty()) return "null\n";
    const auto write = [](const Entry& entry) {
        return state_to_json_line(entry.state, entry.view ? members_of(*entry.view) : MoreMembers());
    };
    return json_array(entries, write) + "\n";
}

// The default root is made by the first container; one that the caller names should be there.
Result<std::vector<ContainerState>> states_below(const GlobalOptions& options) {
    Result<std::vector<ContainerState>> states = load_all_states(options.root);
    if (!states && states.error().code == ENOENT && options.root_is_default) return std::vector<ContainerState>();
    return states;
}

}  // namespace

Result<int> verb_list(const ListOptions& options, const CommandLine& line) {
    std::vector<ContainerState> states = TRY(states_below(line.global));
    // Whoever comes by sudo has no business with the containers of engines, and with root's own sandboxes.
    if (line.gate->binds_caller())
        std::erase_if(states,
                      [](const ContainerState& one) { return !one.record.annotations.contains(kBoundAnnotation); });
    if (options.quiet) {
        TRY(print(ids(states)));
        return 0;
    }
    std::vector<Entry> entries;
    for (ContainerState& state : states) {
        std::optional<SandboxView> view = view_sandbox(line.global.root, state);
        entries.push_back({std::move(state), std::move(view)});
    }
    TRY(print(options.json ? json(entries) : table(entries)));
    return 0;
}

}  // namespace pinfold
