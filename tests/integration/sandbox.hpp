// Jobs in sandboxes, for tests: `pinfold sandbox` on the state directory of a Bundle, whose leak check follows.
#pragma once

#include "harness.hpp"

namespace pinfold::integration {

struct Job {
    std::vector<std::string> options;  // of `sandbox`
    Command command;
    SpawnOptions spawn;
};

// The command line, for who has something else to do while it runs.
std::vector<std::string> job_line(const Bundle& bundle, const Job& job);

// Its exit code and streams; with --result - among the options, the result is on standard output.
Ended run_job(const Bundle& bundle, const Job& job);

// The same with the result, which was asked for on standard output, parsed.
struct Judged {
    int status = 0;
    json result;
    std::string err;  // of pinfold itself
};
Judged judge(const Ended& ended);
Judged judge_job(const Bundle& bundle, Job job);

// A sandbox that stays until the end of the scope. Declare it after its Bundle.
class DetachedSandbox {
public:
    DetachedSandbox(const Bundle& bundle, const std::vector<std::string>& options, const Command& command = {},
                    const SpawnOptions& spawn = {});
    ~DetachedSandbox();
    DetachedSandbox(const DetachedSandbox&) = delete;
    DetachedSandbox& operator=(const DetachedSandbox&) = delete;

    // By who has started it, with other streams if need be.
    Ended run(const std::vector<std::string>& words, SpawnOptions spawn = {}) const;
    Ended exec(std::vector<std::string> options, const Command& command) const;
    // The same with the result asked for and parsed.
    json judge(std::vector<std::string> options, const Command& command) const;
    // The command lines of all that run.
    std::string programs() const;
    void await_end() const;

private:
    const Bundle& bundle_;
    SpawnOptions spawn_;
};

// The job of a normal user, to whom the bundle's directory then belongs.
SpawnOptions normal_user(Bundle& bundle);

// As root and as a normal user.
template <class Check>
void as_both(const Check& check) {
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        check(bundle, rootless ? normal_user(bundle) : SpawnOptions{});
    }
}

// A copy of /etc with a policy in it, seen by this program and by what it starts. Declare it after the Bundle.
class SystemPolicy {
public:
    SystemPolicy(const Bundle& bundle, const std::string& text);

    const fs::path path = "/etc/pinfold/policy.json";

private:
    MountGuard etc_;
};

// A deadline that a job which does not end by itself is worth; whatever else it does, it has done by then.
std::string brief();
double brief_seconds();

const json* denied_call(const json& result, const std::string& name);
json limit_of(const json& result, const std::string& name);

}  // namespace pinfold::integration
