// The plan as JSON.
#include "plan/dump.hpp"

#include "base/strings.hpp"
#include "plan/describe.hpp"
#include "plan/steps.hpp"

namespace pinfold {

namespace {

std::string string_array(const std::vector<std::string>& items, std::string_view indent) {
    std::string out = "[";
    for (const std::string& item : items) {
        out += concat(&item == &items.front() ? "\n" : ",\n", indent, "  ", json_quoted(item));
    }
    return concat(out, "\n", indent, "]");
}

std::string step_object(Step step, const std::vector<std::string>& actions) {
    const char* by = step < kFirstChildStep ? "parent" : "child";
    return concat("    {\n      \"step\": ", json_quoted(step_name(step)), ",\n      \"by\": \"", by,
                  "\",\n      \"actions\": ", string_array(actions, "      "), "\n    }");
}

}  // namespace

std::string dump_plan(const Plan& plan) {
    std::string steps;
    for (const Step step : all_steps(plan.process.no_new_privileges)) {
        const std::vector<std::string> actions = describe_step(step, plan);
        if (actions.empty()) continue;
        steps += concat(steps.empty() ? "" : ",\n", step_object(step, actions));
    }
    return concat("{\n  \"id\": ", json_quoted(plan.id), ",\n  \"bundle\": ", json_quoted(plan.bundle),
                  ",\n  \"steps\": [\n", steps, "\n  ]\n}\n");
}

}  // namespace pinfold
