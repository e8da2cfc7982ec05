// Jobs in sandboxes, for tests.
#include "sandbox.hpp"

#include <sys/mount.h>

namespace pinfold::integration {

std::vector<std::string> job_line(const Bundle& bundle, const Job& job) {
    std::vector<std::string> words = bundle.verb({"sandbox", "--name", bundle.id()});
    words.insert(words.end(), job.options.begin(), job.options.end());
    if (!job.command.empty()) words.push_back("--");
    words.insert(words.end(), job.command.begin(), job.command.end());
    return words;
}

Ended run_job(const Bundle& bundle, const Job& job) { return run_program(job_line(bundle, job), job.spawn); }

Judged judge(const Ended& ended) {
    const json result = json::parse(ended.out, nullptr, false);
    if (result.is_discarded()) FAIL("not a result: " << ended.out << ended.err);
    return {ended.status, result, ended.err};
}

Judged judge_job(const Bundle& bundle, Job job) {
    job.options.insert(job.options.begin(), {"--result", "-"});
    return judge(run_job(bundle, job));
}

DetachedSandbox::DetachedSandbox(const Bundle& bundle, const std::vector<std::string>& options, const Command& command,
                                 const SpawnOptions& spawn)
    : bundle_(bundle), spawn_(spawn) {
    std::vector<std::string> all = {"--detach"};
    all.insert(all.end(), options.begin(), options.end());
    const Ended ended = run_job(bundle, {all, command, spawn});
    CAPTURE(ended.err);
    REQUIRE(ended.status == 0);
    CHECK(ended.out == bundle.id() + "\n");
}

DetachedSandbox::~DetachedSandbox() { run({"delete", "--force", bundle_.id()}); }

Ended DetachedSandbox::run(const std::vector<std::string>& words, SpawnOptions spawn) const {
    spawn.uid = spawn_.uid;
    spawn.env = spawn_.env;
    return run_program(bundle_.verb(words), spawn);
}

Ended DetachedSandbox::exec(std::vector<std::string> options, const Command& command) const {
    options.insert(options.begin(), "exec");
    options.push_back(bundle_.id());
    options.insert(options.end(), command.begin(), command.end());
    return run(options);
}

json DetachedSandbox::judge(std::vector<std::string> options, const Command& command) const {
    options.insert(options.begin(), {"--result", "-"});
    return pinfold::integration::judge(exec(options, command)).result;
}

std::string DetachedSandbox::programs() const {
    return exec({}, {"sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"}).out;
}

void DetachedSandbox::await_end() const {
    const auto start = std::chrono::steady_clock::now();
    while (json::parse(run({"state", bundle_.id()}).out)["status"] != "stopped") {
        if (std::chrono::steady_clock::now() - start > patience()) FAIL("the sandbox still runs");
    }
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
