// What is legal in which state, and a sentence for all that is not.
#include "state/lifecycle.hpp"

#include <map>
#include <set>
#include <string>

#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("lifecycle: each operation is legal in these states and in no other") {
    using enum Status;
    const std::map<Operation, std::set<Status>> legal = {
        {Operation::start, {created}},
        {Operation::exec, {created, running}},
        {Operation::exec_ignoring_pause, {created, running, paused}},
        {Operation::kill, {created, running, paused}},
        {Operation::pause, {running}},
        {Operation::resume, {paused}},
        {Operation::update, {created, running, paused}},
        {Operation::events, {created, running, paused}},
        {Operation::copy, {created, running, paused}},
        {Operation::remove, {created, stopped}},
    };
    for (const auto& rule : legal) {
        for (const Status status : {creating, created, running, paused, stopped}) {
            CAPTURE(static_cast<int>(rule.first));
            CAPTURE(status_name(status));
            const Result<void> allowed = check_operation(rule.first, {.record = {.id = "web"}, .status = status});
            CHECK(allowed.has_value() == rule.second.contains(status));
            if (allowed) continue;
            CHECK(allowed.error().message.ends_with(std::string("'web' is ") + status_name(status)));
        }
    }
}

TEST_CASE("lifecycle: engines find their words, users a hint") {
    const ContainerState stopped{.record = {.id = "web"}, .status = Status::stopped};
    CHECK(check_operation(Operation::kill, stopped).error().message == "container not running: 'web' is stopped");
    const ContainerState half_made{.record = {.id = "web"}, .status = Status::creating};
    CHECK(check_operation(Operation::start, half_made).error().hint.find("pinfold delete --force") !=
          std::string::npos);
    const ContainerState paused{.record = {.id = "web"}, .status = Status::paused};
    CHECK(check_operation(Operation::exec, paused).error().hint == "resume it first, or use --ignore-paused");
}
