// Limits in, config out: the numbers arrive where they belong, and what is written is what was meant.
#include "pinfold/generate.hpp"

#include "spec/parse.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

GenerateOptions with_seccomp() {
    GenerateOptions options;
    options.seccomp = {.default_action = "SCMP_ACT_ERRNO",
                       .default_errno_ret = 1,
                       .flags = {"SECCOMP_FILTER_FLAG_LOG"},
                       .listener_path = "/run/listener.sock",
                       .architectures = {"SCMP_ARCH_X86_64"},
                       .syscalls = {{{"read", "write"}, "SCMP_ACT_ALLOW", {}, {{0, 1, 2, "SCMP_CMP_EQ"}}}}};
    return options;
}

const Mount& mount_at(const Spec& spec, const std::string& path) {
    for (const Mount& mount : spec.mounts) {
        if (mount.destination == path) return mount;
    }
    FAIL("no mount at " << path);
    return spec.mounts[0];
}

uint64_t number_of(const Mount& mount, const std::string& name) {
    for (const std::string& option : mount.options) {
        if (option.starts_with(name + "=")) return std::stoull(option.substr(name.size() + 1));
    }
    FAIL("no " << name << " of " << mount.destination);
    return 0;
}

uint64_t size_of(const Mount& mount) { return number_of(mount, "size"); }

std::string refusal(std::string_view json) {
    const Result<ResourceLimits> limits = parse_resource_limits(json, "limits.json");
    REQUIRE(!limits);
    return limits.error().message;
}

}  // namespace

TEST_CASE("generate: the parser reads back what was written") {
    const Spec spec = generate({}, with_seccomp());
    const std::string text = config_json(spec);
    const Result<Spec> parsed = parse_checked_config(text);
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    CHECK(config_json(*parsed) == text);
    CHECK(parsed->linux_.seccomp->syscalls[0].args[0].value_two == 2);
    CHECK(parsed->linux_.seccomp->flags == std::vector<std::string>{"SECCOMP_FILTER_FLAG_LOG"});
    CHECK(parsed->linux_.seccomp->listener_path == "/run/listener.sock");
    CHECK(parsed->process->capabilities->bounding.empty());
    CHECK(config_json(generate({}, with_seccomp())) == text);
}

TEST_CASE("generate: limits become resources, rlimits and sizes") {
    ResourceLimits limits;
    limits.cpu_cores = 0.5;
    limits.memory_mb = 64;
    limits.disk_mb = 40;
    limits.max_processes = 7;
    const Spec spec = generate(limits, {});
    const Resources& resources = spec.linux_.resources;
    CHECK(resources.memory.limit == 64 << 20);
    CHECK(resources.memory.swap == 64 << 20);
    CHECK(resources.cpu.quota == 50000);
    CHECK(resources.cpu.period == 100000u);
    CHECK(resources.cpu.shares == 512u);
    CHECK(resources.pids_limit == 7);
    const uint64_t shared = size_of(mount_at(spec, "/dev/shm"));
    CHECK(shared == 5 << 20);
    CHECK(size_of(mount_at(spec, "/tmp")) + shared + size_of(mount_at(spec, "/workspace")) == 40 << 20);
    CHECK(number_of(mount_at(spec, "/workspace"), "nr_inodes") == (25 << 20) / 4096 + 1024);
    CHECK(spec.root.readonly);
    CHECK(spec.process->no_new_privileges);
    CHECK(spec.process->user.uid == 1000);
    CHECK(spec.linux_.namespaces.size() == 7);
}

TEST_CASE("generate: with the network there is no namespace for it") {
    ResourceLimits limits;
    limits.network_enabled = true;
    for (const Namespace& one : generate(limits, {}).linux_.namespaces) CHECK(one.type != NamespaceType::network);
}

TEST_CASE("generate: given variables come instead of the standard ones") {
    GenerateOptions options;
    options.env = {"HOME=/x", "A=b"};
    CHECK(generate({}, options).process->env ==
          std::vector<std::string>{
              "HOME=/x", "A=b", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"});
}

TEST_CASE("limits: from JSON, with defaults") {
    const Result<ResourceLimits> limits =
        parse_resource_limits(R"({"cpu_cores": 2, "memory_mb": 1024, "network_enabled": true})", "limits.json");
    REQUIRE_MESSAGE(limits, limits.error().message);
    CHECK(limits->cpu_cores == 2.0);
    CHECK(limits->memory_mb == 1024);
    CHECK(limits->network_enabled);
    CHECK(limits->disk_mb == 100);
    CHECK(limits->max_processes == 50);
    CHECK(limits->timeout_seconds == 60);
}

TEST_CASE("limits: everything that is wrong, at once") {
    const std::string all = refusal(R"({"cpu_cores": 0, "memory_mb": 1.5, "disk_mb": -1, "network_enabled": 1,
        "max_processes": "50", "timeout_seconds": 1e99, "gpu": 1})");
    for (const char* words :
         {"cpu_cores: found 0, allowed: a number from 0.01 to 8192", "memory_mb: found 1.5", "disk_mb: found -1",
          "network_enabled: found 1, allowed: true or false", "max_processes: found \"50\"", "timeout_seconds: found",
          "gpu: is no limit; allowed: cpu_cores, memory_mb"}) {
        CAPTURE(words);
        CHECK_MESSAGE(all.find(words) != std::string::npos, all);
    }
    CHECK(refusal("[]").find("limits.json: found an array, allowed: an object") != std::string::npos);
    CHECK(refusal("{").find("limits.json") != std::string::npos);
}

TEST_CASE("limits: numbers from elsewhere follow the same rules") {
    ResourceLimits limits;
    CHECK(check_resource_limits(limits));
    limits.memory_mb = 0;
    limits.timeout_seconds = -1;
    const Result<void> checked = check_resource_limits(limits);
    REQUIRE(!checked);
    CHECK(checked.error().message.find("memory_mb") != std::string::npos);
    CHECK(checked.error().message.find("timeout_seconds") != std::string::npos);
}
