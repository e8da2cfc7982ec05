// A container whose first process has ended its first thread, and lives on in another: all of the files in /proc that
// speak of the process speak of the thread that has ended.
#include <sched.h>
#include <unistd.h>

#include "cp.hpp"
#include "sandbox.hpp"

namespace pinfold::integration {

namespace {

using As = Container::As;

void await_end_of_first_thread(pid_t pid) {
    const std::string file = "/proc/" + std::to_string(pid) + "/stat";
    while (read_text(file).find(") Z ") == std::string::npos) ::sched_yield();
}

// Who has a group can be paused.
void check_life(const Bundle& bundle, const Container& container, const SpawnOptions& spawn, bool has_group) {
    CHECK(container.status() == "running");
    CHECK(pids_of(bundle) == std::vector<pid_t>{container.pid()});
    const std::string words = "lives on without its first thread, by which alone it can be joined";
    check_refused(container.exec({}, {"/probe", "report"}, spawn), words, 255);
    check_refused(container.exec({"--timeout", "100s"}, {"/probe", "report"}, spawn), words, 255);
    check_refused(verb(bundle, {"cp", bundle.id() + ":/etc/hosts", bundle.host() / "hosts"}), words);
    check_refused(verb(bundle, {"delete", bundle.id()}), "a container that runs is not deleted");
    if (!has_group) return;
    container.must({"pause", bundle.id()});
    CHECK(container.status() == "paused");
    container.must({"resume", bundle.id()});
}

}  // namespace

TEST_CASE("threads: a container whose first thread has ended runs, until it is killed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        INFO(std::string(rootless ? "a normal user's" : "root's"));
        Bundle bundle;
        bundle.probe({"leaderless", "1"});
        SpawnOptions spawn;
        if (rootless) {
            bundle.make_rootless(kNobodySpecial);
            spawn.uid = kNobodySpecial;
        }
        const Container container(bundle, As::running, {.spawn = spawn});
        await_end_of_first_thread(container.pid());
        check_life(bundle, container, spawn, !rootless);
        container.must({"kill", bundle.id(), "KILL"});
        container.await_end();  // not reaped, since that is for us to do
        CHECK(container.status() == "stopped");
        container.must({"delete", bundle.id()});
        CHECK_FALSE(exists(bundle));
    }
}

// Without a group it could be found by nothing else.
TEST_CASE("threads: a forced delete ends the container whose first thread has ended") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"leaderless", "1"}).make_rootless(kNobodySpecial);
    const Container container(bundle, As::running, {.spawn = {.uid = kNobodySpecial}});
    await_end_of_first_thread(container.pid());
    container.must({"delete", "--force", bundle.id()});
    container.await_end();
}

// It has not ended before its tracer has seen the end of the thread, or has ended itself.
TEST_CASE("threads: a forced delete ends the container one of whose processes traces the first") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    bundle.drop_namespace("pid").probe({"hold-thread"});
    const Container container(bundle, As::running);
    CHECK(await_file(bundle.host() / "output") == "READY\n");
    container.must({"delete", "--force", bundle.id()});
    container.await_end();
}

}  // namespace pinfold::integration
