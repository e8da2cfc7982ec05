// No group is left behind, whatever the payload has made of its own and however it ended.
#include <signal.h>

#include "harness.hpp"
#include "turns.hpp"

using namespace pinfold::integration;

namespace {

constexpr const char* kInside = "/sys/fs/cgroup";

// A payload that nests groups in its own and sits in the deepest of them.
std::vector<Command> nesting() {
    const std::string a = std::string(kInside) + "/a";
    return {{"mkdir", a},
            {"mkdir", a + "/b"},
            {"mkdir", std::string(kInside) + "/c"},
            {"orphan"},
            {"write", a + "/b/cgroup.procs", "0"},
            {"wait-signal"}};
}

void give_groups_to(Bundle& bundle) {
    bundle.add_namespace("cgroup");
    bundle.mount(kInside, "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "relatime", "rw"});
}

fs::path group_of(const Bundle& bundle) { return cgroup2_mount() / "pinfold" / bundle.id(); }

char state_of(pid_t pid) {
    const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
    return stat.at(stat.rfind(')') + 2);
}

}  // namespace

TEST_CASE("cleanup: groups that the payload nested go with it") {
    NEEDS_GROUPS();
    Bundle bundle;
    give_groups_to(bundle);
    const Turns payload(bundle, nesting());
    CHECK_FALSE(read_text(group_of(bundle) / "a/b/cgroup.procs").empty());
    CHECK(fs::exists(group_of(bundle) / "c"));
    payload.go_on_without_answer();
    CHECK(payload.end() == 0);
    CHECK_FALSE(fs::exists(group_of(bundle)));
}

TEST_CASE("cleanup: nested groups, one of them frozen, and a pinfold that was killed") {
    NEEDS_GROUPS();
    Bundle bundle;
    give_groups_to(bundle);
    bundle.probe_each(nesting());
    const auto running = start(bundle);
    while (running->read_line() != "READY") continue;
    write_text(group_of(bundle) / "a/cgroup.freeze", "1");
    running->signal(SIGKILL);
    CHECK(running->finish().status == 128 + SIGKILL);
    check_ok(verb(bundle, {"delete", "--force", bundle.id()}));
    CHECK_FALSE(fs::exists(group_of(bundle)));
}

TEST_CASE("cleanup: a first process that nobody has reaped") {
    NEEDS_GROUPS();
    Bundle bundle;
    bundle.probe({"sleep-forever"});
    const Container container(bundle, Container::As::running);
    REQUIRE(::kill(container.pid(), SIGKILL) == 0);
    container.await_end();
    REQUIRE(state_of(container.pid()) == 'Z');  // it is ours by now, and we leave it
    CHECK(fs::exists(group_of(bundle)));
    check_ok(verb(bundle, {"delete", bundle.id()}));
    CHECK_FALSE(fs::exists(group_of(bundle)));
    CHECK(state_of(container.pid()) == 'Z');
}

TEST_CASE("cleanup: a first process that was killed for want of memory, with others beside it") {
    NEEDS_CONTROLLER("memory");
    Bundle bundle;
    give_groups_to(bundle);
    bundle.config["linux"]["resources"]["memory"] = {{"limit", 32 << 20}, {"swap", 32 << 20}};
    std::vector<Command> commands = nesting();
    commands.back() = {"alloc", "64"};
    bundle.probe_each(commands);
    CHECK(run(bundle).status == 128 + SIGKILL);
    CHECK_FALSE(fs::exists(group_of(bundle)));
}
