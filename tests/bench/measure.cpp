// One timed run of one command, and the figures drawn from many runs.
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

Result<pid_t> spawn(const std::vector<std::string>& words, int stderr_file, int report) {
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, stderr_file, STDERR_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, report, kLaunchReportFd);
    pid_t child = -1;
    const int error = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return errno_error(error, concat("start ", quoted(words[0])));
    return child;
}

std::vector<std::string> launcher_words(const std::string& launcher, const Command& command) {
    std::vector<std::string> words = {launcher};
    if (command.pretend_memlock) words.emplace_back("--pretend-memlock");
    words.insert(words.end(), command.argv.begin(), command.argv.end());
    return words;
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

Result<Sample> run_once(const std::string& launcher, const Command& command) {
    const UniqueFd stderr_file(::memfd_create("stderr", MFD_CLOEXEC));
    const UniqueFd report_file(::memfd_create("report", MFD_CLOEXEC));
    if (!stderr_file || !report_file) return errno_error("memfd_create");
    const pid_t child = TRY(spawn(launcher_words(launcher, command), stderr_file.get(), report_file.get()));
    int status = 0;
    if (::waitpid(child, &status, 0) != child) return errno_error("waitpid");
    LaunchReport report;
    const ssize_t size = ::pread(report_file.get(), &report, sizeof report, 0);
    if (status != 0 || size != sizeof report) return plain_error(concat(quoted(launcher), " did not report"));
    if (::lseek(stderr_file.get(), 0, SEEK_SET) != 0) return errno_error("lseek");
    return Sample{static_cast<double>(report.wall_ns) / 1e6, static_cast<double>(report.cpu_us) / 1e3,
                  report.max_rss_kb, exit_code(report.wait_status), TRY(read_all(stderr_file.get(), "standard error"))};
}

Summary summarize(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const auto at = [&](std::size_t percent) { return values[(values.size() - 1) * percent / 100]; };
    return {at(50), values.front(), at(90)};
}

}  // namespace pinfold::bench
