// Hostile jobs as rows of tables: what each tries, how it has to end, and what has to be told of it. All of them run as
// root and as a normal user, beside a host that is looked at afterwards.
#pragma once

#include <optional>

#include "sandbox.hpp"

namespace pinfold::integration {

enum class As { root, user };

struct End {
    const char* status;
    int exit_code;  // pinfold's own
};
inline constexpr End kTimedOut{"timed_out", 124};
inline constexpr End kOutOfMemory{"oom_killed", 137};
inline constexpr End kFine{"exited", 0};

// What a job must not reach, and what must not change. Jobs find its places in their environment.
class Host {
public:
    explicit Host(const Bundle& bundle);

    std::vector<std::string> job_options() const;
    // For pinfold itself: a secret in its environment, one in a descriptor.
    void confide_in(SpawnOptions& pinfold) const;
    void check_unharmed(const std::string& printed) const;

    fs::path canary() const { return directory_ / "canary"; }

private:
    fs::path directory_;
    std::string port_;
    std::string name_;     // of the abstract socket
    UniqueFd sockets_[4];  // TCP, UDP, unix abstract, unix
    UniqueFd secret_;
    std::string settings_;
};

// A sandbox beside, which ends well only if nobody has touched it.
class Neighbour {
public:
    explicit Neighbour(const Bundle& bundle);
    ~Neighbour();
    Neighbour(const Neighbour&) = delete;
    Neighbour& operator=(const Neighbour&) = delete;

private:
    Process process_;
};

struct Attempt {
    As as;
    const Bundle& bundle;
    const Host& host;
    const json& result;

    std::string out() const { return result["stdout"]; }
    std::string err() const { return result["stderr"]; }
    double used(const char* what) const { return result["usage"][what].is_null() ? 0 : double(result["usage"][what]); }
    uint64_t denials(const std::string& name) const;  // of that call
    json answer(size_t line) const;                   // of the probe
};

struct Attack {
    const char* name;
    std::vector<std::string> options;
    Command command;  // or {"@FILE", ...}: a script of tests/data/hostile. /probe is there if it is the program
    End end = kFine;
    // A normal user has no groups: processor time is held of each process, or not at all, and memory is watched.
    std::optional<End> end_of_user = {};
    std::vector<std::string> denied = {};  // these calls, and no others
    void (*check)(const Attempt&) = nullptr;
    bool beside = false;  // with a neighbour
};

void run_attacks(const std::vector<Attack>& attacks);

}  // namespace pinfold::integration
