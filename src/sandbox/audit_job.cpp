// What the audit log is told of a job.
#include "sandbox/audit_job.hpp"

#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "sandbox/build_config.hpp"
#include "sandbox/classify.hpp"
#include "sandbox/publish.hpp"

namespace pinfold {

namespace {

constexpr const char* kNetworks[] = {"none", "host", "pasta"};

std::vector<std::string> bind_words(const std::vector<HostBind>& binds) {
    std::vector<std::string> words;
    for (const HostBind& bind : binds) {
        words.push_back(concat(bind.source, ':', bind.destination, bind.writable ? ":rw" : ":ro"));
    }
    return words;
}

std::vector<std::string> copy_words(const std::vector<FileCopy>& copies) {
    std::vector<std::string> words;
    for (const FileCopy& copy : copies) words.push_back(concat(copy.source, ':', copy.destination));
    return words;
}

std::vector<std::string> publish_words(const std::vector<PublishedPort>& ports) {
    std::vector<std::string> words;
    for (const PublishedPort& port : ports) words.push_back(publish_text(port));
    return words;
}

const char* limit_hit(SandboxStatus status) {
    switch (status) {
        case SandboxStatus::timed_out: return "timeout";
        case SandboxStatus::oom_killed: return "memory";
        case SandboxStatus::output_limit: return "output";
        default: return nullptr;
    }
}

}  // namespace

AuditEvent job_event(const SandboxJob& job, const std::string& id, const std::string& config) {
    return {"sandbox",
            id,
            to_hex(sha256(config)),
            {{"command", json_list(job.command)},
             {"network", json_quoted(kNetworks[size_t(job.network)])},
             {"seccomp", json_quoted(profile_of(job))},
             {"publish", json_list(publish_words(job.publish))},
             {"binds", json_list(bind_words(job.binds))},
             {"copy_in", json_list(copy_words(job.copy_in))},
             {"copy_out", json_list(copy_words(job.copy_out))}}};
}

void log_result(const AuditTrail& trail, const std::string& id, const Result<SandboxResult>& ended, Ended what) {
    if (!trail.is_on()) return;
    using Members = std::vector<std::pair<std::string, std::string>>;
    const auto append = [&](const char* event, Members members) {
        if (what == Ended::exec) members.emplace_back("of", json_quoted("exec"));
        append_or_warn(trail, {event, id, "", std::move(members)});
    };
    const SandboxResult result = ended ? *ended : failed_result(ended.error());
    for (const DeniedCall& call : result.denied.value_or(std::vector<DeniedCall>())) {
        append("denied", {{"call", json_quoted(call.name)},
                          {"count", std::to_string(call.count)},
                          {"program", json_quoted(call.program)}});
    }
    if (const char* limit = limit_hit(result.status)) append("limit", {{"limit", json_quoted(limit)}});
    Members members = {{"status", json_quoted(status_word(result.status))},
                       {"code", std::to_string(exit_code_of(result))}};
    if (!result.error.empty()) members.emplace_back("error", json_quoted(result.error));
    append_or_warn(trail, {what == Ended::exec ? "exec-end" : "end", id, "", std::move(members)});
}

}  // namespace pinfold
