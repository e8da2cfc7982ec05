// Where the time goes. pinfold --debug prints "[   1.234 ms] step" with the time since its start; the floor --times
// prints "step TAB microseconds". Both become one list of named steps, each with the median of its durations.
#include "breakdown.hpp"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/strings.hpp"
#include "report.hpp"

namespace pinfold::bench {

namespace {

struct Step {
    std::string name;
    double microseconds = 0;
};

std::optional<double> parse_decimal(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// A line's time is when its step began: it lasts until the next one, whoever takes that, as parent and child work side
// by side. The clock starts anew where pinfold executes itself again.
std::vector<Step> parse_debug_lines(std::string_view text) {
    std::vector<Step> steps = {{"until the first step"}};
    double previous = 0;
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t open = line.find('[');
        const std::size_t close = line.find(" ms] ");
        if (open == line.npos || close == line.npos || close < open) continue;
        const auto now = parse_decimal(line.substr(open + 1, close - open - 1));
        if (!now) continue;
        steps.back().microseconds = (*now - (*now < previous ? 0 : previous)) * 1e3;
        steps.push_back({std::string(line.substr(close + 5))});
        previous = *now;
    }
    return steps;
}

std::vector<Step> parse_floor_lines(std::string_view text) {
    std::vector<Step> steps;
    for (const std::string_view line : split(text, '\n')) {
        const std::size_t tab = line.find('\t');
        if (tab == line.npos) continue;
        if (const auto time = parse_decimal(line.substr(tab + 1)))
            steps.push_back({std::string(line.substr(0, tab)), *time});
    }
    return steps;
}

// The option goes where the program takes it: pinfold's globals come first, the floor's --times before its ROOTFS.
Command with_tracing(const Scenario& scenario, const std::string& id) {
    Command command = scenario.command(id);
    const bool floor = scenario.name.starts_with("floor");
    command.argv.insert(floor ? command.argv.end() - 2 : command.argv.begin() + 1, floor ? "--times" : "--debug");
    return command;
}

Result<std::string> trace(Runner& runner, const Scenario& scenario, int runs) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<double>> durations;
    for (int run = 0; run < runs; run++) {
        const std::string told = TRY(runner.run_for_errors(with_tracing(scenario, concat("trace-", run))));
        const bool floor = scenario.name.starts_with("floor");
        for (const Step& step : floor ? parse_floor_lines(told) : parse_debug_lines(told)) {
            if (!durations.contains(step.name)) order.push_back(step.name);
            durations[step.name].push_back(step.microseconds);
        }
    }
    std::string text = concat("\n", scenario.name, ": median (minimum) microseconds of ", runs, " runs\n");
    double sum = 0;
    for (const std::string& name : order) {
        const Summary summary = summarize(durations[name]);
        sum += summary.median;
        text += formatted("%9.1f", summary.median) + formatted(" (%8.1f)  ", summary.minimum) + name + "\n";
    }
    return text + formatted("%9.1f", sum) + "             sum of medians\n";
}

}  // namespace

Result<std::string> break_down(Runner& runner, const std::vector<Scenario>& scenarios, int runs) {
    std::string text;
    for (const Scenario& scenario : scenarios) {
        const bool floor = scenario.name.starts_with("floor: run");
        const bool traced = floor || scenario.name.starts_with("pinfold: run");
        if (traced && scenario.skip_reason.empty() && scenario.every == 1) text += TRY(trace(runner, scenario, runs));
    }
    return text;
}

}  // namespace pinfold::bench
