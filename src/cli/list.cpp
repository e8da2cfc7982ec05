// pinfold list.

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "plan/plan.hpp"
#include "policy/gate.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

using Row = std::array<std::string, 6>;

Row row_of(const ContainerState& state) {
    const ContainerRecord& record = state.record;
    return {record.id,
            std::to_string(state.pid),
            status_name(state.status),
            printable(record.bundle),
            printable(record.created),
            concat("#", record.owner)};
}

// Each column as wide as its widest entry, and two blanks.
std::string table(const std::vector<ContainerState>& states) {
    std::vector<Row> rows = {{"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"}};
    for (const ContainerState& state : states) rows.push_back(row_of(state));
    std::array<size_t, std::tuple_size_v<Row>> widths{};
    for (const Row& row : rows) {
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size() + 2);
    }
    std::string text;
    for (const Row& row : rows) {
        for (size_t i = 0; i + 1 < row.size(); ++i) text += row[i] + std::string(widths[i] - row[i].size(), ' ');
        text += row.back() + "\n";
    }
    return text;
}

std::string ids(const std::vector<ContainerState>& states) {
    std::string text;
    for (const ContainerState& state : states) text += state.record.id + "\n";
    return text;
}

std::string json(const std::vector<ContainerState>& states) {
    if (states.empty()) return "null\n";
    return json_array(states, state_to_json_line) + "\n";
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
    // Whoever comes by sudo has no business with the containers of engines.
    if (line.gate->binds_caller())
        std::erase_if(states,
                      [](const ContainerState& one) { return !one.record.annotations.contains(kSandboxAnnotation); });
    TRY(print(options.quiet ? ids(states) : options.json ? json(states) : table(states)));
    return 0;
}

}  // namespace pinfold
