// config.json, and the documents that exec and update get: read, checked and planned with, on several kinds of hosts.
#include "cgroup/plan.hpp"
#include "cgroup/systemd.hpp"
#include "fuzz/target.hpp"
#include "json/json.hpp"
#include "plan/plan.hpp"
#include "process/parent_steps.hpp"
#include "spec/parse.hpp"
#include "spec/resources.hpp"
#include "spec/validate.hpp"

namespace pinfold::fuzz {

namespace {

HostFacts host_with(uid_t uid, CgroupHost cgroup) {
    HostFacts host;
    host.uid = host.gid = uid;
    host.capabilities = uid == 0 ? ~uint64_t{0} : 0;
    host.cgroup = std::move(cgroup);
    host.cgroup.systemd.running = true;
    return host;
}

const std::vector<HostFacts>& hosts() {
    static const std::vector<HostFacts> all = {
        host_with(0, {.mount = "/sys/fs/cgroup"}),
        host_with(1000, {.mount = "/sys/fs/cgroup", .home = "/user.slice"}),
        host_with(0, {.mount = "/sys/fs/cgroup/unified", .hybrid = true, .v1 = {{"memory", "/sys/fs/cgroup/memory"}}}),
    };
    return all;
}

void try_plan(const Spec& spec, const HostFacts& host, CgroupManager manager) {
    const Result<Plan> plan = make_plan(spec, {.id = "id", .bundle = "/bundle", .cgroup_manager = manager}, host);
    if (!plan) return check_refusal(plan.error());
    must_hold(parse_json(dump_plan(*plan), "plan").has_value(), "a plan is printed as JSON");
}

}  // namespace

void try_config(std::string_view input) {
    const std::optional<Json> json = read_document(input);
    if (!json) return;
    Problems problems;
    const Spec spec = parse_spec(Json(*json), problems);
    validate_spec(spec, problems);
    refuse_unsupported(*json, problems);
    if (!problems.empty()) return check_problems(problems, *json);
    for (const HostFacts& host : hosts()) {
        for (const CgroupManager manager : {CgroupManager::cgroupfs, CgroupManager::systemd}) {
            try_plan(spec, host, manager);
        }
    }
}

void try_process(std::string_view input) {
    const std::optional<Json> json = read_document(input);
    if (!json) return;
    Problems problems;
    const Process process = parse_process(*json, problems);
    validate_process(process, "", problems);
    refuse_unsupported(*json, problems, "process");
    if (!problems.empty()) return check_problems(problems, *json);
    const Result<ExecPlan> plan = plan_exec({}, "id", {.process = process, .user = {}}, hosts()[0]);
    must_hold(plan.has_value(), "a process that is valid can be planned");
    must_hold(plan->process.args == process.args, "what is executed is what was asked for");
    must_hold(plan->process.identity.uid == process.user.uid, "whoever executes it is whom the document names");
}

void try_resources(std::string_view input) {
    const std::optional<Json> json = read_document(input);
    if (!json) return;
    Problems problems;
    const Resources resources = parse_resources(*json, problems);
    validate_resources(resources, "", problems);
    if (!problems.empty()) return check_problems(problems, *json);
    const Result<std::vector<CgroupWrite>> writes = v2_writes(resources);
    if (!writes) return check_refusal(writes.error());
    for (const CgroupWrite& write : *writes) {
        must_hold(write.file.find('/') == write.file.npos, "a limit is written to a file of the group's own");
    }
    limit_properties(*writes);
}

}  // namespace pinfold::fuzz
