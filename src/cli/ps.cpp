// pinfold ps: the pids of a container, or those lines of ps(1) that speak of them.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/processes.hpp"
#include "cli/verbs.hpp"
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

std::string to_json(const std::vector<pid_t>& pids) {
    std::vector<std::string> numbers;
    for (const pid_t pid : pids) numbers.push_back(std::to_string(pid));
    return concat('[', join(numbers, ","), "]\n");
}

Result<pid_t> spawn_ps(const std::vector<std::string>& arguments, int output) {
    std::vector<std::string> words = {"ps"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::posix_spawn_file_actions_adddup2(&actions, output, fd);
    pid_t pid = 0;
    const int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (failed == 0) return pid;
    return errno_error(failed, "start ps").with_hint("install ps(1), or use --format json");
}

Result<std::string> output_of_ps(const std::vector<std::string>& arguments) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("make a pipe for ps");
    const UniqueFd in(ends[0]);
    UniqueFd out(ends[1]);
    const pid_t pid = TRY(spawn_ps(arguments, out.get()));
    out.reset();
    std::string text = TRY(read_all(in.get(), "the output of ps"));
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) return text;
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
    for (const std::string_view line : std::span(lines).subspan(1)) {
        const std::vector<std::string_view> words = words_of(line);
        if (words.empty()) continue;
        const auto pid = column < words.size() ? parse_number<pid_t>(words[column]) : std::nullopt;
        if (!pid) {
            return plain_error(concat("the output of ps has a line without a number in the PID column: ", quoted(line)))
                .with_hint("let the PID column come first, as in -o pid,args");
        }
        if (std::ranges::binary_search(pids, *pid)) out += concat(line, '\n');
    }
    return out;
}

}  // namespace

Result<int> verb_ps(const PsOptions& options, const CommandLine& line) {
    const ContainerState state = TRY(load_state(line.global.root, options.id));
    const std::vector<pid_t> pids = TRY(processes_of(state));
    if (options.json) {
        TRY(print(to_json(pids)));
        return 0;
    }
    const std::vector<std::string> everything = {"-ef"};
    const std::string table = TRY(output_of_ps(options.args.empty() ? everything : options.args));
    const std::string selected = TRY(select_lines(table, pids));
    TRY(print(selected));
    return 0;
}

}  // namespace pinfold
