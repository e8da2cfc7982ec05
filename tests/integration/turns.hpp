// For tests of groups in use: a payload that works in turns, and the files of its group.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "harness.hpp"

namespace pinfold::integration {

// Without the newline at its end; empty where there is no such file.
inline std::string group_file_of(const Bundle& bundle, const std::string& name) {
    const std::string home = bundle.config["linux"].value("cgroupsPath", "/pinfold/" + bundle.id());
    std::string text = read_text(cgroup2_mount() / home.substr(1) / name);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

// It stops at each wait-signal until it is told to go on.
class Turns {
public:
    Turns(Bundle& bundle, const std::vector<Command>& commands, const RunOptions& options = {}) : bundle_(bundle) {
        bundle.probe_each(commands);
        running_ = start(bundle, options);
        await_ready();
    }
    // Lines of the payload until the next turn.
    void await_ready() const {
        while (running_->read_line() != "READY") continue;
    }
    // The answer of the command after the wait.
    json go_on() const {
        go_on_without_answer();
        return answer();
    }
    void go_on_without_answer() const { running_->signal(SIGTERM); }
    json answer() const {
        while (running_->read_line() != "TERM") continue;
        running_->read_line();  // of the wait itself
        return json::parse(running_->read_line());
    }
    int end() const { return running_->finish().status; }
    Ended finish() const { return running_->finish(); }
    // For a payload that would never end by itself.
    int kill() const {
        CHECK(verb(bundle_, {"kill", bundle_.id(), "KILL"}).status == 0);
        return end();
    }

    Ended update(std::vector<std::string> words, const std::string& input = {}) const {
        words.insert(words.begin(), {"update", bundle_.id()});
        return run_program(bundle_.verb(words), {.input = input});
    }
    std::string group_file(const std::string& name) const { return group_file_of(bundle_, name); }

private:
    const Bundle& bundle_;
    std::unique_ptr<Process> running_;
};

inline void check_ok(const Ended& ended) { CHECK_MESSAGE(ended.status == 0, ended.err); }

inline void check_fails(const Ended& ended, const std::string& words) {
    CHECK(ended.status == 1);
    CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
}

}  // namespace pinfold::integration

#define NEEDS_GROUPS() \
    NEEDS_ROOT();      \
    PINFOLD_ONLY();    \
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine")

// For limits that this machine has to enforce.
#define NEEDS_CONTROLLER(name) \
    NEEDS_GROUPS();            \
    if (!has_controller(name)) SKIP_TEST(std::string("no ") + (name) + " controller in cgroup v2")
