// What a sandbox that stays was started with, as it is remembered.
#include "sandbox/job_file.hpp"

#include <unistd.h>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

SandboxJob read_again(const SandboxJob& job) {
    Result<SandboxJob> read = job_from_text(job_text(job));
    REQUIRE(read);
    return std::move(*read);
}

}  // namespace

TEST_CASE("job file: all that it is started with is the same the next time, whatever bytes it has") {
    SandboxJob job;
    const std::string bytes("\xff\0\n\"", 4);
    job.command = {"sh", "", bytes};
    job.env = {"A=" + bytes};
    job.script = bytes;
    job.script_name = "main.sh";
    job.limits = {0.25, 64, 32, true, 7, 1.5};
    job.network = Network::pasta;
    job.binds = {{"/a", "/b", true}, {"/c", "/d", false}};
    job.secrets = {{"key", "/file"}};
    job.publish = {{"127.0.0.1", 0, 80}, {"::1", 8080, 443}};
    job.cwd = "sub";
    job.user = "7:8";
    job.seccomp = "strict";
    job.root_template = "python";
    job.keep_files = "/kept";
    job.tcp_bind = "80";
    job.tcp_connect = "none";
    job.must_hold = {"cpu_cores"};
    job.allow_unenforced = {"disk_mb"};
    job.writable_root = job.merge_output = job.require_cgroup = job.receipt = true;
    job.landlock = job.strict = false;
    job.output_limit = 5;
    job.cpu_timeout = std::chrono::milliseconds(1500);
    job.idle_timeout = std::chrono::hours(1);
    const SandboxJob read = read_again(job);
    CHECK(read.command == job.command);
    CHECK(read.env == job.env);
    CHECK(read.script == bytes);
    CHECK(read.script_name == "main.sh");
    CHECK(read.limits.cpu_cores == 0.25);
    CHECK(read.limits.memory_mb == 64);
    CHECK(read.limits.disk_mb == 32);
    CHECK(read.limits.network_enabled);
    CHECK(read.limits.max_processes == 7);
    CHECK(read.limits.timeout_seconds == 1.5);
    CHECK(read.network == Network::pasta);
    REQUIRE(read.publish.size() == 2);
    CHECK(read.publish[0].host == 0);
    CHECK(read.publish[0].inside == 80);
    CHECK(read.publish[1].address == "::1");
    CHECK(read.publish[1].host == 8080);
    REQUIRE(read.binds.size() == 2);
    CHECK(read.binds[0].source == "/a");
    CHECK(read.binds[0].destination == "/b");
    CHECK(read.binds[0].writable);
    CHECK(!read.binds[1].writable);
    REQUIRE(read.secrets.size() == 1);
    CHECK(read.secrets[0].name == "key");
    CHECK(read.secrets[0].file == "/file");
    CHECK(read.cwd == "sub");
    CHECK(read.user == "7:8");
    CHECK(read.seccomp == "strict");
    CHECK(read.root_template == "python");
    CHECK(read.keep_files == "/kept");
    CHECK(read.tcp_bind == "80");
    CHECK(read.tcp_connect == "none");
    CHECK(read.must_hold == job.must_hold);
    CHECK(read.allow_unenforced == job.allow_unenforced);
    CHECK((read.writable_root && read.merge_output && read.require_cgroup && read.receipt));
    CHECK((!read.landlock && !read.strict));
    CHECK(read.output_limit == 5);
    CHECK(read.cpu_timeout == job.cpu_timeout);
    CHECK(read.idle_timeout == job.idle_timeout);
    CHECK(!read.lifetime);
}

TEST_CASE("job file: paths are those of where it was started; copies are made once") {
    SandboxJob job;
    job.rootfs = "root";
    job.binds = {{"data", "/data", false}};
    job.seccomp = "own.json";
    job.root_template = "own/template";
    job.copy_in = {{"a", "b"}};
    char here[4096];
    REQUIRE(::getcwd(here, sizeof here) != nullptr);
    const std::string base = std::string(here) + "/";
    const SandboxJob read = read_again(job);
    CHECK(read.rootfs == base + "root");
    CHECK(read.binds[0].source == base + "data");
    CHECK(read.seccomp == base + "own.json");
    CHECK(read.root_template == base + "own/template");
    CHECK(read.bundle.empty());
    CHECK(read.copy_in.empty());
    CHECK(read_again({}).limits.cpu_cores == 1);  // a whole number
}

TEST_CASE("job file: what is none is refused") {
    for (const char* text : {"", "{}", "[]", R"({"limits": {}, "network": 9})"}) CHECK_FALSE(job_from_text(text));
}
