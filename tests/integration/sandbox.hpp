// Jobs in sandboxes, for tests: `pinfold sandbox` on the state directory of a Bundle, whose leak check follows.
#pragma once

#include "harness.hpp"

namespace pinfold::integration {

struct Job {
    std::vector<std::string> options;  // of `sandbox`
    Command command;
    SpawnOptions spawn;
};

// Its exit code and streams; with --result - among the options, the result is on standard output.
Ended run_job(const Bundle& bundle, const Job& job);

// The same with the result asked for and parsed.
struct Judged {
    int status = 0;
    json result;
    std::string err;  // of pinfold itself
};
Judged judge_job(const Bundle& bundle, Job job);

// The job of a normal user, to whom the bundle's directory then belongs.
SpawnOptions normal_user(Bundle& bundle);

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
