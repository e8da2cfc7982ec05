// Bundles for tests and ways to run them: the config is JSON that a test edits, the payload is the probe.
// After each test nothing may be left: no process, mount, cgroup, state directory or stray file.
#pragma once

#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

#include "host.hpp"
#include "process.hpp"
#include "support/testing.hpp"

namespace pinfold::integration {

using nlohmann::json;

// PINFOLD_BIN, split at blanks ("crun --cgroup-manager=disabled" works); by default the one built beside the tests.
const std::vector<std::string>& runtime_command();

// The suite also runs on peers, to test the tests. What only pinfold promises is not asked of them.
enum class Runtime { pinfold, crun, runc };
Runtime runtime();

// The user for tests without privileges; it has no entry in any file of the machine.
inline constexpr uid_t kNobodySpecial = 65000;

using Command = std::vector<std::string>;

struct Outcome {
    int status = 0;
    std::string out;
    std::string err;

    // The n-th line of the payload's answers; fails the test with the runtime's words when it is not there.
    json answer(size_t index = 0) const;
    bool says(const std::string& text) const { return err.find(text) != std::string::npos; }
};

struct RunOptions {
    std::vector<std::string> global;  // before the verb
    std::vector<std::string> args;    // after `run`
    SpawnOptions spawn;
};

class Bundle {
public:
    Bundle();
    ~Bundle();  // the leak check
    Bundle(const Bundle&) = delete;
    Bundle& operator=(const Bundle&) = delete;

    json config;

    const std::string& id() const { return id_; }
    const fs::path& path() const { return path_; }
    fs::path rootfs() const { return path_ / "rootfs"; }
    fs::path state_root() const { return home_ / "state"; }
    // A directory of this test outside of the bundle, for sources of mounts, sockets and the like.
    fs::path host() const { return home_ / "host"; }
    // All of it then belongs to that user, who is root inside.
    void make_rootless(uid_t uid);

    // The payload: the probe with one command, or with several that answer one line each.
    Bundle& probe(const Command& command) { return probe_each({command}); }
    Bundle& probe_each(const std::vector<Command>& commands);

    Bundle& mount(const std::string& destination, const std::string& type, const std::string& source,
                  const std::vector<std::string>& options);
    Bundle& bind(const fs::path& source, const std::string& destination, std::vector<std::string> options = {});
    Bundle& drop_mount(const std::string& destination);
    Bundle& drop_namespace(const std::string& type);
    Bundle& add_namespace(const std::string& type, const std::string& path = "");

    void write_config() const;
    // The files of the bundle and the root, as a sorted text: to show that nothing changed.
    std::string listing() const;

    std::vector<std::string> command_line(const RunOptions& options) const;
    std::vector<std::string> verb(const std::vector<std::string>& words) const;

private:
    void check_processes() const;

    std::string id_;
    fs::path home_;
    fs::path path_;
    std::string mounts_before_;
};

// A payload that waits for a signal, and so for good.
inline Bundle& waiting(Bundle& bundle) { return bundle.probe({"wait-signal"}); }

// Writes the config and runs it to its end.
Outcome run(const Bundle& bundle, const RunOptions& options = {});

// The same, with the payload's commands given: run_probe(bundle, {{"read", "/x"}, {"report"}}).
Outcome run_probe(Bundle& bundle, const std::vector<Command>& commands, const RunOptions& options = {});

// `report` of a run that must succeed.
json report_of(Bundle& bundle, const RunOptions& options = {});

// Started and left running.
std::unique_ptr<Process> start(const Bundle& bundle, const RunOptions& options = {});

// Another verb of the runtime on the same state directory: state, delete, ...
Ended verb(const Bundle& bundle, const std::vector<std::string>& words);

// Whether the runtime remembers anything of a container.
bool exists(const Bundle& bundle);
// The container's processes, as `ps` tells them.
std::vector<pid_t> pids_of(const Bundle& bundle);

// A container that was created, or started too, and that is forced away at the end of the scope. Declare it after its
// Bundle.
class Container {
public:
    enum class As { created, running };

    Container(const Bundle& bundle, As as, const RunOptions& options = {});
    ~Container();
    Container(const Container&) = delete;
    Container& operator=(const Container&) = delete;

    pid_t pid() const { return pid_; }
    std::string status() const;
    // Another verb that must succeed; its standard output.
    std::string must(const std::vector<std::string>& words) const;
    // exec with these words after the options and the id.
    Ended exec(std::vector<std::string> options, const Command& command, const SpawnOptions& spawn = {}) const;
    // What the probe, as one more process, says of itself.
    json exec_report(const std::vector<std::string>& options = {}) const;
    // Waits until its first process is gone.
    void await_end() const;

private:
    const Bundle& bundle_;
    pid_t pid_ = 0;
    UniqueFd pidfd_;
};

// One that must fail: exit code and words are checked.
void check_refused(const Ended& ended, const std::string& words, int status = 1);

// The mount that is visible at this place in a report (the last one there); fails the test when there is none.
json mount_at(const json& report, const std::string& point);
bool has(const json& list, const std::string& item);

// The entry of a report's /dev; null when it is not there.
json device_at(const json& report, const std::string& path);

}  // namespace pinfold::integration

// For what the other runtimes do not promise.
#define PINFOLD_ONLY()                                                                 \
    if (::pinfold::integration::runtime() != ::pinfold::integration::Runtime::pinfold) \
    SKIP_TEST("a promise of pinfold alone")

// Most tests: without root there is nothing to drive.
#define NEEDS_ROOT() \
    if (::pinfold::integration::playground().empty()) SKIP_TEST("needs root")
