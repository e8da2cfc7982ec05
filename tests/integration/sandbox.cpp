// Jobs in sandboxes, for tests.
#include "sandbox.hpp"

#include <sys/mount.h>

namespace pinfold::integration {

Ended run_job(const Bundle& bundle, const Job& job) {
    std::vector<std::string> words = bundle.verb({"sandbox", "--name", bundle.id()});
    words.insert(words.end(), job.options.begin(), job.options.end());
    if (!job.command.empty()) words.push_back("--");
    words.insert(words.end(), job.command.begin(), job.command.end());
    return run_program(words, job.spawn);
}

Judged judge_job(const Bundle& bundle, Job job) {
    job.options.insert(job.options.begin(), {"--result", "-"});
    const Ended ended = run_job(bundle, job);
    CAPTURE(ended.err);
    const json result = json::parse(ended.out, nullptr, false);
    if (result.is_discarded()) FAIL("not a result: " << ended.out << ended.err);
    return {ended.status, result, ended.err};
}

SpawnOptions normal_user(Bundle& bundle) {
    bundle.make_rootless(kNobodySpecial);
    return {.uid = kNobodySpecial, .env = {"HOME=/", "XDG_RUNTIME_DIR="}};
}

static fs::path etc_with(const fs::path& target, const std::string& policy) {
    fs::copy("/etc", target, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::create_directories(target / "pinfold");
    write_text(target / "pinfold/policy.json", policy);
    return target;
}

SystemPolicy::SystemPolicy(const Bundle& bundle, const std::string& text)
    : etc_(etc_with(bundle.host() / "etc", text), "/etc", "", MS_BIND) {}

double brief_seconds() { return testing::slow_machine() ? 5 : 1; }
std::string brief() { return std::to_string(int(brief_seconds() * 1000)) + "ms"; }

const json* denied_call(const json& result, const std::string& name) {
    for (const json& call : result["denied"]) {
        if (call["name"] == name) return &call;
    }
    return nullptr;
}

json limit_of(const json& result, const std::string& name) {
    for (const json& limit : result["limits"]) {
        if (limit["name"] == name) return limit;
    }
    FAIL("no limit " << name << " in the result");
    return {};
}

}  // namespace pinfold::integration
