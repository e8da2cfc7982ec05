// Who holds a job to its limits where a normal user has no cgroup for it.
#include "sandbox/rlimit_fallback.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "pinfold/generate.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

constexpr uint64_t kMegabyte = 1 << 20;

HostFacts normal_user() {
    HostFacts host;
    host.uid = host.gid = 1000;
    host.cgroup.writable = false;
    return host;
}

// A group that was delegated with these controllers.
HostFacts with_controllers(const TempDir& mount, const char* controllers) {
    HostFacts host = normal_user();
    host.cgroup.writable = true;
    host.cgroup.mount = mount.path();
    host.cgroup.home = "/user.slice";
    std::filesystem::create_directory(mount.file("user.slice"));
    std::ofstream(mount.file("user.slice/cgroup.controllers")) << controllers << '\n';
    return host;
}

Spec fallen_back(const SandboxJob& job, const HostFacts& host, const Seccomp& seccomp = {}) {
    GenerateOptions options;
    options.seccomp = seccomp;
    Spec spec = generate(job.limits, options);
    const Result<void> done = fall_back_to_rlimits(job, host, spec);
    REQUIRE_MESSAGE(done, done.error().message);
    return spec;
}

const Rlimit* find(const Spec& spec, const std::string& type) {
    const std::vector<Rlimit>& limits = spec.process->rlimits;
    const auto found = std::ranges::find(limits, type, &Rlimit::type);
    return found == limits.end() ? nullptr : &*found;
}

// What the profile answers to a call that has no conditions: the errno, 0 where it is allowed.
uint32_t answer(const Seccomp& profile, const std::string& name) {
    std::vector<uint32_t> answers;
    for (const SyscallRule& rule : profile.syscalls) {
        if (std::ranges::find(rule.names, name) == rule.names.end()) continue;
        CHECK(rule.args.empty());
        answers.push_back(rule.action == "SCMP_ACT_ALLOW" ? 0 : rule.errno_ret.value_or(EPERM));
    }
    REQUIRE_MESSAGE(answers.size() == 1, name);  // one word for each, or the kernel takes the stricter
    return answers[0];
}

}  // namespace

TEST_CASE("limits: root's are the group's alone, and the sandbox init counts as one process more") {
    SandboxJob job;
    job.limits.max_processes = 20;
    HostFacts root;
    root.cgroup.v1 = {{"cpu", "/cpu"}, {"memory", "/memory"}, {"pids", "/pids"}};
    const Spec spec = fallen_back(job, root);
    CHECK(spec.linux_.resources.pids_limit == 21);
    REQUIRE(find(spec, "RLIMIT_NPROC"));
    CHECK(find(spec, "RLIMIT_NPROC")->soft == 22);  // the group's comes first, which counts
    CHECK(find(spec, "RLIMIT_NPROC")->hard == 22);
    CHECK(spec.linux_.resources.memory.limit == int64_t(job.limits.memory_mb * kMegabyte));
    CHECK_FALSE(find(spec, "RLIMIT_DATA"));
    CHECK_FALSE(find(spec, "RLIMIT_CPU"));
}

TEST_CASE("limits: root without controllers is held as a normal user is, and refused what that is") {
    SandboxJob job;
    const Spec spec = fallen_back(job, HostFacts());
    CHECK_FALSE(spec.linux_.resources.memory.limit);
    CHECK_FALSE(spec.linux_.resources.pids_limit);
    CHECK(find(spec, "RLIMIT_DATA"));
    job.require_cgroup = true;
    Spec strict = generate(job.limits, {});
    CHECK_FALSE(fall_back_to_rlimits(job, HostFacts(), strict));
    job.require_cgroup = false;
    job.must_hold = {"cpu_cores"};
    CHECK_FALSE(fall_back_to_rlimits(job, HostFacts(), strict));
}

TEST_CASE("limits: processors that nobody can hold are an error, where they were asked for and not allowed to go") {
    const auto fallen = [](const SandboxJob& job) {
        Spec spec = generate(job.limits, {});
        return fall_back_to_rlimits(job, normal_user(), spec);
    };
    SandboxJob job;
    CHECK(fallen(job));
    job.must_hold = {"cpu_cores"};
    REQUIRE_FALSE(fallen(job));
    CHECK(fallen(job).error().hint.find("--allow-unenforced cpu_cores") != std::string::npos);
    job.must_hold.clear();
    job.limits.cpu_cores = 0.5;
    CHECK_FALSE(fallen(job));
    job.allow_unenforced = {"cpu_cores"};
    CHECK(fallen(job));
    job.allow_unenforced = {"memory_mb"};
    CHECK_FALSE(fallen(job));
}

TEST_CASE("limits: without any controller, rlimits take over what they can, and the groups' are asked for no more") {
    SandboxJob job;
    job.limits.memory_mb = 64;
    job.limits.max_processes = 20;
    job.cpu_timeout = std::chrono::milliseconds(1200);
    const Spec spec = fallen_back(job, normal_user());
    const Resources& resources = spec.linux_.resources;
    CHECK_FALSE(resources.memory.limit);
    CHECK_FALSE(resources.memory.swap);
    CHECK_FALSE(resources.pids_limit);
    CHECK_FALSE(resources.cpu.quota);
    CHECK_FALSE(resources.cpu.shares);
    REQUIRE(find(spec, "RLIMIT_DATA"));
    CHECK(find(spec, "RLIMIT_DATA")->hard == 64 * kMegabyte);
    REQUIRE(find(spec, "RLIMIT_AS"));
    CHECK(find(spec, "RLIMIT_AS")->hard > 64 * kMegabyte);
    CHECK(find(spec, "RLIMIT_NPROC")->hard == 21);
    REQUIRE(find(spec, "RLIMIT_CPU"));
    CHECK(find(spec, "RLIMIT_CPU")->soft == 2);  // whole seconds, and none less than was promised
    CHECK(find(spec, "RLIMIT_CPU")->hard == 3);
}

TEST_CASE("limits: only what the delegated group has no controller for falls back") {
    const TempDir mount;
    SandboxJob job;
    job.cpu_timeout = std::chrono::seconds(1);
    const Spec spec = fallen_back(job, with_controllers(mount, "cpuset memory pids"));
    CHECK(spec.linux_.resources.memory.limit);
    CHECK(spec.linux_.resources.pids_limit);
    CHECK_FALSE(spec.linux_.resources.cpu.quota);  // "cpuset" is another
    CHECK_FALSE(find(spec, "RLIMIT_DATA"));
    CHECK_FALSE(find(spec, "RLIMIT_CPU"));  // the group counts the time of all
}

TEST_CASE("limits: who insists on a group is told which controllers are missing") {
    const TempDir mount;
    SandboxJob job;
    job.require_cgroup = true;
    Spec spec = generate(job.limits, {});
    const Result<void> refused = fall_back_to_rlimits(job, with_controllers(mount, "pids"), spec);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("controllers memory, cpu can") != std::string::npos);
    CHECK_FALSE(refused.error().hint.empty());
    const TempDir other;
    fallen_back(job, with_controllers(other, "cpu memory pids"));
}

TEST_CASE("limits: memory that nobody sees is forbidden where nobody but the supervisor counts it") {
    const Seccomp allowing{.default_action = "SCMP_ACT_ERRNO",
                           .syscalls = {{{"memfd_create", "read"}, "SCMP_ACT_ALLOW", {}, {}},
                                        {{"shmget"}, "SCMP_ACT_ALLOW", {}, {}},
                                        {{"memfd_secret"}, "SCMP_ACT_ERRNO", EXDEV, {}},
                                        {{"ipc"}, "SCMP_ACT_ERRNO", EACCES, {{0, 1, 0, "SCMP_CMP_EQ"}}}}};
    const Spec spec = fallen_back({}, normal_user(), allowing);
    REQUIRE(spec.linux_.seccomp);
    const Seccomp& profile = *spec.linux_.seccomp;
    CHECK(answer(profile, "read") == 0);
    CHECK(answer(profile, "memfd_create") == ENOSYS);
    CHECK(answer(profile, "shmget") == ENOSYS);
    CHECK(answer(profile, "ipc") == ENOSYS);          // also where the condition does not hold
    CHECK(answer(profile, "memfd_secret") == EXDEV);  // the profile's own word
    for (const SyscallRule& rule : profile.syscalls) CHECK_FALSE(rule.names.empty());

    const TempDir mount;
    const Spec grouped = fallen_back({}, with_controllers(mount, "cpu memory pids"), allowing);
    CHECK(answer(*grouped.linux_.seccomp, "memfd_create") == 0);
}
