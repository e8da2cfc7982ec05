// What a sandbox that stays was started with. Texts are in base64: arguments, paths and scripts may be any bytes.
#include "sandbox/job_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <climits>

#include "base/base64.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"

namespace pinfold {

namespace {

constexpr const char* kJobFile = "job";
constexpr size_t kMaxJob = size_t{64} << 20;  // a script and the arguments, a third longer than they are

using Texts = std::vector<std::string>;
using Time = std::optional<std::chrono::nanoseconds>;

template <class Type>
struct Field {
    const char* name;
    Type SandboxJob::*member;
};

constexpr Field<std::string> kTexts[] = {
    {"cwd", &SandboxJob::cwd},           {"user", &SandboxJob::user},
    {"script", &SandboxJob::script},     {"script_name", &SandboxJob::script_name},
    {"tcp_bind", &SandboxJob::tcp_bind}, {"tcp_connect", &SandboxJob::tcp_connect},
};
constexpr Field<std::string> kPaths[] = {
    {"rootfs", &SandboxJob::rootfs}, {"bundle", &SandboxJob::bundle}, {"keep_files", &SandboxJob::keep_files}};
// Names, unless there is a slash in them or they end so.
constexpr Field<std::string> kNamesOrPaths[] = {{"root_template", &SandboxJob::root_template},
                                                {"seccomp", &SandboxJob::seccomp}};
constexpr Field<Texts> kLists[] = {{"command", &SandboxJob::command},
                                   {"env", &SandboxJob::env},
                                   {"must_hold", &SandboxJob::must_hold},
                                   {"allow_unenforced", &SandboxJob::allow_unenforced}};
constexpr Field<bool> kFlags[] = {{"writable_root", &SandboxJob::writable_root},
                                  {"merge_output", &SandboxJob::merge_output},
                                  {"require_cgroup", &SandboxJob::require_cgroup},
                                  {"receipt", &SandboxJob::receipt},
                                  {"landlock", &SandboxJob::landlock},
                                  {"strict", &SandboxJob::strict}};
constexpr Field<Time> kTimes[] = {{"cpu_timeout", &SandboxJob::cpu_timeout},
                                  {"lifetime", &SandboxJob::lifetime},
                                  {"idle_timeout", &SandboxJob::idle_timeout}};

std::string absolute(const std::string& path) {
    if (path.empty() || path.starts_with('/')) return path;
    char here[PATH_MAX];
    return ::getcwd(here, sizeof here) == nullptr ? path : concat(here, '/', path);
}

std::string absolute_file(const std::string& name) {
    const bool is_file = name.find('/') != name.npos || name.ends_with(".json");
    return is_file ? absolute(name) : name;
}

Json written(const std::string& text) { return json_of(to_base64(text)); }
std::string read_text(const Json* json) {
    return json == nullptr || json->string() == nullptr ? "" : from_base64(*json->string());
}

Json limits_json(const ResourceLimits& limits) {
    return {Json::Object{{"cpu_cores", json_of(limits.cpu_cores)},
                         {"memory_mb", json_of(limits.memory_mb)},
                         {"disk_mb", json_of(limits.disk_mb)},
                         {"network_enabled", json_of(limits.network_enabled)},
                         {"max_processes", json_of(limits.max_processes)},
                         {"timeout_seconds", json_of(limits.timeout_seconds)}}};
}

// Whole numbers are read as such.
double real(const Json& object, std::string_view key) {
    const Json* value = object.find(key);
    return value != nullptr && value->real() != nullptr ? *value->real() : double(object.number(key));
}

ResourceLimits limits_from(const Json& json) {
    return {.cpu_cores = real(json, "cpu_cores"),
            .memory_mb = json.number("memory_mb"),
            .disk_mb = json.number("disk_mb"),
            .network_enabled = json.flag("network_enabled"),
            .max_processes = json.number("max_processes"),
            .timeout_seconds = real(json, "timeout_seconds")};
}

Json binds_json(const SandboxJob& job) {
    return json_of(job.binds, [](const HostBind& bind) -> Json {
        return {Json::Object{{"source", written(absolute(bind.source))},
                             {"destination", written(bind.destination)},
                             {"writable", json_of(bind.writable)}}};
    });
}

Json secrets_json(const SandboxJob& job) {
    return json_of(job.secrets, [](const Secret& secret) -> Json {
        return {Json::Object{{"name", written(secret.name)}, {"file", written(absolute(secret.file))}}};
    });
}

Json ports_json(const SandboxJob& job) {
    return json_of(job.publish, [](const PublishedPort& port) -> Json {
        return {Json::Object{{"address", written(port.address)},
                             {"host_port", json_of(uint64_t{port.host})},
                             {"inside_port", json_of(uint64_t{port.inside})}}};
    });
}

template <class Take>
void for_each_in(const Json& root, std::string_view key, const Take& take) {
    const Json* list = root.find(key);
    if (list == nullptr || list->array() == nullptr) return;
    for (const Json& one : *list->array()) take(one);
}

}  // namespace

std::string job_text(const SandboxJob& job) {
    Json::Object root;
    for (const auto& [name, member] : kTexts) root.push_back({name, written(job.*member)});
    for (const auto& [name, member] : kPaths) root.push_back({name, written(absolute(job.*member))});
    for (const auto& [name, member] : kNamesOrPaths) root.push_back({name, written(absolute_file(job.*member))});
    for (const auto& [name, member] : kLists) root.push_back({name, json_of(job.*member, written)});
    for (const auto& [name, member] : kFlags) root.push_back({name, json_of(job.*member)});
    for (const auto& [name, member] : kTimes) {
        if (job.*member) root.push_back({name, json_of((job.*member)->count())});
    }
    root.push_back({"limits", limits_json(job.limits)});
    root.push_back({"network", json_of(uint64_t(job.network))});
    root.push_back({"output_limit", json_of(job.output_limit)});
    root.push_back({"binds", binds_json(job)});
    root.push_back({"secrets", secrets_json(job)});
    root.push_back({"publish", ports_json(job)});
    return json_text({std::move(root)});
}

Result<SandboxJob> job_from_text(std::string_view text) {
    const Json root = TRY(parse_json(text, kJobFile, kOwnJson));
    const Json* limits = root.find("limits");
    if (limits == nullptr || root.number("network") > uint64_t(Network::pasta))
        return plain_error("what it was started with is not to be understood");
    SandboxJob job;
    for (const auto& [name, member] : kTexts) job.*member = read_text(root.find(name));
    for (const auto& [name, member] : kPaths) job.*member = read_text(root.find(name));
    for (const auto& [name, member] : kNamesOrPaths) job.*member = read_text(root.find(name));
    for (const auto& [name, member] : kLists)
        for_each_in(root, name, [&, to = member](const Json& one) { (job.*to).push_back(read_text(&one)); });
    for (const auto& [name, member] : kFlags) job.*member = root.flag(name);
    for (const auto& [name, member] : kTimes) {
        if (root.find(name) != nullptr) job.*member = std::chrono::nanoseconds(root.number(name));
    }
    job.limits = limits_from(*limits);
    job.network = static_cast<Network>(root.number("network"));
    job.output_limit = root.number("output_limit");
    for_each_in(root, "binds", [&](const Json& one) {
        job.binds.push_back({read_text(one.find("source")), read_text(one.find("destination")), one.flag("writable")});
    });
    for_each_in(root, "secrets", [&](const Json& one) {
        job.secrets.push_back({read_text(one.find("name")), read_text(one.find("file"))});
    });
    for_each_in(root, "publish", [&](const Json& one) {
        job.publish.push_back({read_text(one.find("address")), static_cast<uint16_t>(one.number("host_port")),
                               static_cast<uint16_t>(one.number("inside_port"))});
    });
    return job;
}

Result<void> keep_job(const SandboxJob& job, const StateDir& state) {
    return job.keep_files.empty() ? Result<void>() : state.write_file(kJobFile, job_text(job));
}

Result<SandboxJob> load_job(const std::string& root, const std::string& id) {
    const UniqueFd file = TRY(open_state_file(root, id, kJobFile, O_RDONLY));
    const std::string text = TRY(read_at_most(file.get(), kJobFile, kMaxJob));
    SandboxJob job = TRY(job_from_text(text));
    job.name = id;
    return job;
}

}  // namespace pinfold
