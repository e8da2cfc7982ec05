// One run of one command: timed, or with its system calls counted. And the figures drawn from many runs.
#include "measure.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "launch.hpp"

namespace pinfold::bench {

namespace {

constexpr int kTracerFd = 4;

struct Files {
    int errors;
    int report;
    int tracer;  // -1: nothing is traced
};

Result<pid_t> spawn(const std::vector<std::string>& words, const Files& files) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, files.errors, STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, files.report, kLaunchReportFd);
    if (files.tracer >= 0) ::posix_spawn_file_actions_adddup2(&actions, files.tracer, kTracerFd);
    pid_t child = -1;
    const int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return errno_error(error, concat("start ", quoted(words[0])));
    return child;
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

std::string trace_file(const std::string& directory, size_t number) { return concat(directory, "/trace-", number); }

// The last line of strace -c: "100.00    0.012345           3      1234        56 total".
Result<double> total_calls(const std::string& path) {
    const std::string text = TRY(read_file(path));
    const size_t total = text.rfind(" total");
    if (total == text.npos) return plain_error(concat(path, ": strace has counted nothing"));
    const size_t line = text.rfind('\n', total) + 1;
    std::vector<std::string_view> words = split(std::string_view(text).substr(line, total - line), ' ');
    std::erase(words, "");
    const auto calls = words.size() < 4 ? std::nullopt : parse_number<int>(words[3]);
    if (!calls) return plain_error(concat(path, ": not what strace -c writes"));
    return *calls;
}

// A tracer lives until the last of those it traces has ended, and keeps the other end of this pipe.
Result<void> await_tracer(int pipe) {
    char byte = 0;
    return ::read(pipe, &byte, 1) == 0 ? Result<void>() : errno_error("wait for strace");
}

}  // namespace

void Sample::add(const Sample& more) {
    wall_ms += more.wall_ms;
    cpu_ms += more.cpu_ms;
    memory_kb = std::max(memory_kb, more.memory_kb);
    instructions = more.instructions < 0 ? -1 : std::max(instructions, 0.0) + more.instructions;
}

std::vector<std::string> Runner::words_for(const Command& command) const {
    std::vector<std::string> words = {launcher_};
    if (command.pretend_memlock) words.emplace_back("--pretend-memlock");
    if (command.user != 0) words.insert(words.end(), {"--user", std::to_string(command.user)});
    if (command.times > 1 && !counts()) {
        words.insert(words.end(), {"--times", std::to_string(command.times)});
        words.insert(words.end(), {"--at-once", std::to_string(command.at_once)});
    }
    // -D: the command stays the launcher's child, and strace need not end with it, as a created container does not.
    if (counts()) words.insert(words.end(), {strace_, "-D", "-f", "-c", "-o", trace_file(directory_, tracers_.size())});
    words.insert(words.end(), command.argv.begin(), command.argv.end());
    return words;
}

Result<Sample> Runner::run(const Command& command) { return TRY(launch(command)).sample; }

Result<std::string> Runner::run_for_errors(const Command& command) { return TRY(launch(command)).errors; }

Result<Runner::Ended> Runner::launch(const Command& command) {
    const UniqueFd stderr_file(::memfd_create("stderr", MFD_CLOEXEC));
    const UniqueFd report_file(::memfd_create("report", MFD_CLOEXEC));
    if (!stderr_file || !report_file) return errno_error("memfd_create");
    int pipe[2] = {-1, -1};
    if (counts() && ::pipe2(pipe, O_CLOEXEC) != 0) return errno_error("pipe2");
    UniqueFd tracer(pipe[0]);
    UniqueFd kept_by_tracer(pipe[1]);
    const std::vector<std::string> words = words_for(command);
    const pid_t child = TRY(spawn(words, {stderr_file.get(), report_file.get(), kept_by_tracer.get()}));
    if (counts()) tracers_.push_back(std::move(tracer));
    int status = 0;
    if (::waitpid(child, &status, 0) != child) return errno_error("waitpid");
    LaunchReport report;
    const ssize_t size = ::pread(report_file.get(), &report, sizeof report, 0);
    if (status != 0 || size != sizeof report) return plain_error(concat(quoted(launcher_), " did not report"));
    if (::lseek(stderr_file.get(), 0, SEEK_SET) != 0) return errno_error("lseek");
    std::string errors = TRY(read_all(stderr_file.get(), "standard error"));
    if (report.wait_status != 0) {
        const int code = exit_code(report.wait_status);
        return plain_error(concat(join(command.argv, " "), " exited with ", code, ":\n", errors));
    }
    const double wall_ms = static_cast<double>(report.wall_ns) / 1e6;
    const Sample sample{wall_ms, static_cast<double>(report.cpu_us) / 1e3, static_cast<double>(report.max_rss_kb),
                        command.times * 1e3 / wall_ms, static_cast<double>(report.instructions)};
    return Ended{sample, std::move(errors)};
}

Result<double> Runner::take_calls() {
    double calls = 0;
    for (size_t i = 0; i < tracers_.size(); i++) {
        TRY(await_tracer(tracers_[i].get()));
        calls += TRY(total_calls(trace_file(directory_, i)));
    }
    tracers_.clear();
    return calls;
}

Summary summarize(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const auto at = [&](std::size_t percent) { return values[(values.size() - 1) * percent / 100]; };
    return {at(50), values.front(), values.back(), at(10), at(90)};
}

}  // namespace pinfold::bench
