// The table of legal operations.
#include "state/lifecycle.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

namespace {

using enum Status;

template <class... Statuses>
constexpr unsigned any_of(Statuses... statuses) {
    return ((1U << static_cast<unsigned>(statuses)) | ...);
}

struct Rule {
    Operation operation;
    unsigned legal;
    const char* otherwise;  // engines look for the words "container not running"
};

constexpr Rule kRules[] = {
    {Operation::start, any_of(created), "only a created container can be started"},
    {Operation::exec, any_of(created, running), "only a container that runs takes another program"},
    {Operation::exec_ignoring_pause, any_of(created, running, paused),
     "only a container that runs takes another program"},
    {Operation::kill, any_of(created, running, paused), "container not running"},
    {Operation::pause, any_of(running), "only a running container can be paused"},
    {Operation::resume, any_of(paused), "only a paused container can be resumed"},
    {Operation::update, any_of(created, running, paused), "container not running"},
    {Operation::events, any_of(created, running, paused), "container not running"},
    {Operation::copy, any_of(created, running, paused), "container not running"},
    {Operation::remove, any_of(created, stopped), "a container that runs is not deleted"},
};

std::string hint_for(Operation operation, Status status) {
    if (operation == Operation::exec && status == paused) return "resume it first, or use --ignore-paused";
    if (status == creating) return "wait until create has ended, or remove what it left: pinfold delete --force";
    return "";
}

}  // namespace

Result<void> check_operation(Operation operation, const ContainerState& state) {
    const auto rule = std::ranges::find(kRules, operation, &Rule::operation);
    if ((rule->legal & any_of(state.status)) != 0) return {};
    return plain_error(concat(rule->otherwise, ": ", quoted(state.record.id), " is ", status_name(state.status)))
        .with_hint(hint_for(operation, state.status));
}

}  // namespace pinfold
