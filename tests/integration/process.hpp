// A program started by a test: its output, its end, and a deadline for everything that is awaited.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pinfold/unique_fd.hpp"

namespace pinfold::integration {

using pinfold::UniqueFd;

struct SpawnOptions {
    std::optional<uid_t> uid;              // that user and group, no other groups
    std::vector<std::pair<int, int>> fds;  // {number there, descriptor here}; 0, 1 and 2 may be among them
    std::vector<int> closed;               // numbers that are not open there, 0, 1 and 2 among them
    std::vector<std::string> env;          // NAME=VALUE, added
    std::string directory;                 // working directory
    std::string input;                     // standard input, at most a pipe's worth
    bool own_terminal = false;             // fd 0 becomes the controlling terminal of a new session
    mode_t umask = 022;
    std::vector<int> blocked_signals;
    std::vector<int> ignored_signals;  // all others have their default action, whatever this program was started with
};

struct Ended {
    int status = 0;  // exit code, or 128 + signal
    std::string out;
    std::string err;
};

// How long to await anything: far more than it takes, and much more on an emulated machine.
std::chrono::milliseconds patience();

// Waits until the descriptor is readable (or at its end); false when patience ends.
bool await_readable(int fd);

// The file's text, once it is there and not empty; fails the test when it does not come.
std::string await_file(const std::string& path);

class Process {
public:
    Process(const std::vector<std::string>& argv, const SpawnOptions& options);
    ~Process();  // kills and reaps what was not awaited
    Process(Process&&) = delete;
    Process& operator=(Process&&) = delete;

    pid_t pid() const { return pid_; }
    void signal(int number) const;

    // The next line of standard output, without the newline; fails the test when none comes.
    std::string read_line();

    // Collects both streams until the process ends (not until they end: a detached container keeps them), then reaps.
    Ended finish();

private:
    // One wait for output or the end; false when there is nothing left to wait for.
    bool advance();

    pid_t pid_ = -1;
    UniqueFd pidfd_;
    UniqueFd out_;
    UniqueFd err_;
    std::string out_text_;
    std::string err_text_;
    size_t taken_ = 0;  // of out_text_, by read_line
};

Ended run_program(const std::vector<std::string>& argv, const SpawnOptions& options = {});

}  // namespace pinfold::integration
