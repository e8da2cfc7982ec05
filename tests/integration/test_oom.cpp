// Running out of memory is told as such: what was killed, which limit it was, and which one would do.
#include <signal.h>

#include <regex>

#include "harness.hpp"
#include "turns.hpp"

using namespace pinfold::integration;

namespace {

void limit_memory(Bundle& bundle, int64_t bytes) {
    bundle.config["linux"]["resources"]["memory"] = {{"limit", bytes}, {"swap", bytes}};
}

constexpr int64_t kLimit = 32 << 20;
constexpr const char* kReached = "; linux.resources.memory.limit, 33554432 bytes, was reached\n";

json annotations_of(const Bundle& bundle) {
    return json::parse(verb(bundle, {"state", bundle.id()}).out)["annotations"];
}

// The number that the message of a failed start names; 0 where it names none.
int64_t enough_for(const Outcome& failed) {
    std::smatch found;
    const std::regex words("memory limit too low: .*; it takes ([0-9]+)\nhint: set linux.resources.memory.limit to ");
    return std::regex_search(failed.err, found, words) ? std::stoll(found[1]) : 0;
}

}  // namespace

TEST_CASE("oom: the first process, its pid and the limit are named") {
    NEEDS_CONTROLLER("memory");
    Bundle bundle;
    limit_memory(bundle, kLimit);
    const fs::path pid_file = bundle.host() / "pid";
    const Outcome outcome = run_probe(bundle, {{"alloc", "64"}}, {.args = {"--pid-file", pid_file}});
    CHECK(outcome.status == 128 + SIGKILL);
    CHECK(outcome.err == "pinfold: warning: container '" + bundle.id() +
                             "': out of memory: the kernel killed 1 process, the container's first ('/probe', pid " +
                             read_text(pid_file) + ")" + kReached);
    CHECK(run_probe(bundle, {{"alloc", "8"}}).err.empty());
}

TEST_CASE("oom: of other processes, the number is told") {
    NEEDS_CONTROLLER("memory");
    Bundle bundle;
    limit_memory(bundle, kLimit);
    const Outcome outcome = run_probe(bundle, {{"exec", "/probe", "alloc", "64"}, {"exec", "/probe", "alloc", "64"}});
    CHECK(outcome.status == 0);
    CHECK(outcome.answer(1)["code"] == 128 + SIGKILL);
    CHECK(outcome.err ==
          "pinfold: warning: container '" + bundle.id() + "': out of memory: the kernel killed 2 processes" + kReached);
}

TEST_CASE("oom: a limit of a group above is not taken for the container's own") {
    NEEDS_CONTROLLER("memory");
    Bundle bundle;
    const std::string parent = bundle.id() + "-parent";
    bundle.config["linux"]["cgroupsPath"] = "/" + parent + "/" + bundle.id();
    CHECK(run_probe(bundle, {{"exit", "0"}}).status == 0);
    write_text(cgroup2_mount() / parent / "memory.max", std::to_string(kLimit));
    write_text(cgroup2_mount() / parent / "memory.swap.max", "0");
    const Outcome outcome = run_probe(bundle, {{"alloc", "64"}});
    CHECK(outcome.status == 128 + SIGKILL);
    CHECK_MESSAGE(outcome.says("; it was a limit above the container's group, or the host's memory"), outcome.err);
    fs::remove(cgroup2_mount() / parent);
}

TEST_CASE("oom: the state tells of it until the container is deleted") {
    NEEDS_CONTROLLER("memory");
    Bundle bundle;
    limit_memory(bundle, kLimit);
    bundle.config["annotations"] = {{"mine", "stays"}};
    {
        const Turns payload(bundle, {{"wait-signal"}, {"alloc", "64"}}, {.args = {"--keep"}});
        CHECK(annotations_of(bundle) == json{{"mine", "stays"}});
        payload.go_on_without_answer();
        CHECK(payload.end() == 128 + SIGKILL);
    }
    CHECK(annotations_of(bundle) == json{{"mine", "stays"}, {"org.pinfold.oom-killed", "1"}});
    check_ok(verb(bundle, {"delete", bundle.id()}));
}

TEST_CASE("oom: a limit too low for the start is told, with one that is enough") {
    NEEDS_CONTROLLER("memory");
    for (const int64_t low : {4096, 16384}) {
        Bundle bundle;
        bundle.probe({"exit", "0"});
        limit_memory(bundle, low);
        const Outcome failed = run(bundle);
        CHECK(failed.status == 1);
        const int64_t enough = enough_for(failed);
        REQUIRE_MESSAGE(enough > low, failed.err);
        CHECK(failed.says(" at " + std::to_string(low) + " bytes; it takes "));

        limit_memory(bundle, enough);
        const Outcome works = run(bundle);
        CHECK_MESSAGE(works.status == 0, works.err);
        // Not a quarter of it: half may do now and then, as the kernel charges in batches, for each processor.
        limit_memory(bundle, enough / 4);
        CHECK(run(bundle).status != 0);

        limit_memory(bundle, low);
        bundle.write_config();
        const Ended refused = verb(bundle, {"create", "--bundle", bundle.path(), bundle.id()});
        check_fails(refused, "memory limit too low: ");
        CHECK(verb(bundle, {"state", bundle.id()}).status == 1);
    }
}

TEST_CASE("oom: while another limit is looked for, no hook runs and no socket hears of it") {
    NEEDS_CONTROLLER("memory");
    Bundle bundle;
    bundle.probe({"exit", "0"});
    limit_memory(bundle, 4096);
    const fs::path log = bundle.host() / "hooks";
    const auto hook = [&](const std::string& name) {
        return json::array({{{"path", "/bin/sh"}, {"args", {"sh", "-c", "echo " + name + " >> " + log.string()}}}});
    };
    bundle.config["hooks"] = {{"createRuntime", hook("create")}, {"poststop", hook("stop")}};
    const Outcome failed = run(bundle, {.args = {"--pid-file", bundle.host() / "pid"}});
    CHECK(enough_for(failed) > 0);
    CHECK(read_text(log) == "stop\n");
    CHECK_FALSE(fs::exists(bundle.host() / "pid"));
}
