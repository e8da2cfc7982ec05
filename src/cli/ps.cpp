// pinfold ps: the pids of a container, or those lines of ps(1) that speak of them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// By the group, not by the state: what a container without a PID namespace leaves behind is in it, too.
Result<std::vector<pid_t>> processes_of(const ContainerState& state) {
    const ContainerRecord& record = state.record;
    if (record.cgroup.exists()) return group_processes(record.cgroup);
    if (state.pid == 0) return std::vector<pid_t>();
    return std::vector<pid_t>{state.pid};
}

Result<std::string> output_of_ps(const std::vector<std::string>& arguments) {
    Pipe pipe = TRY(make_pipe(" for ps"));
    std::vector<std::string> words = {"ps"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    Result<pid_t> pid = spawn(words, pipe.to.get());
    if (!pid) return std::move(pid).error().with_hint("install ps(1), or use --format json");
    pipe.to.reset();
    std::string text = TRY(read_all(pipe.from.get(), "the output of ps"));
    if (reap(*pid) == 0) return text;
    while (text.ends_with('\n')) text.pop_back();
    return plain_error(concat("ps ", join(arguments, " "), " failed: ", text));
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words = split(line, ' ');
    std::erase(words, std::string_view());
    return words;
}

// The heading and the lines whose PID column names one of the processes.
Result<std::string> select_lines(std::string_view table, const std::vector<pid_t>& pids) {
    const std::vector<std::string_view> lines = split(table, '\n');
    const std::vector<std::string_view> heading = words_of(lines[0]);
    const auto column = size_t(std::ranges::find(heading, "PID") - heading.begin());
    if (column == heading.size()) return plain_error("the output of ps has no PID column");
    std::string out = concat(lines[0], '\n');
    for (size_t i = 1; i < lines.size(); ++i) {
        const std::string_view line = lines[i];
        const std::vector<std::string_view> words = words_of(line);
        if (words.empty()) continue;
        const auto pid = column < words.size() ? parse_number<pid_t>(words[column]) : std::nullopt;
        // What it says is not told: it may speak of any process of the host.
        if (!pid) {
            return plain_error(concat("the output of ps has no number in the PID column of line ", i + 1))
                .with_hint("let the PID column come first, as in -o pid,args");
        }
        if (std::ranges::binary_search(pids, *pid)) out += concat(line, '\n');
    }
    return out;
}

}  // namespace

// They say what is told of which processes, and which column is called PID: with them ps(1) tells of all of the host's,
// as root may see them.
static Result<void> check_arguments(const PsOptions& options, const Gate& gate) {
    if (!gate.binds_caller() || options.args.empty()) return {};
    return Error{kPolicyRefusal, "policy: arguments of ps(1) are for who has their own rights", "leave them out"};
}

Result<int> verb_ps(const PsOptions& options, const CommandLine& line) {
    TRY(check_arguments(options, *line.gate));
    const ContainerState state = TRY(load_state(line.global.root, options.id));
    const std::vector<pid_t> pids = TRY(processes_of(state));
    if (options.json) {
        TRY(print(json_array(pids, [](pid_t pid) { return std::to_string(pid); }) + "\n"));
        return 0;
    }
    const std::vector<std::string> everything = {"-ef"};
    const std::string table = TRY(output_of_ps(options.args.empty() ? everything : options.args));
    const std::string selected = TRY(select_lines(table, pids));
    TRY(print(selected));
    return 0;
}

}  // namespace pinfold
