// What `spec --limits` writes, under other runtimes: unchanged it runs there, and its limits bite.
#include "harness.hpp"
#include "runtimes.hpp"

using namespace pinfold::integration;

namespace {

const std::vector<std::string> kLimits = {"--cpus", "0.5", "--memory", "64m", "--disk", "40m"};

// The bundle's own config is what pinfold has written there, for the probe with these commands.
Ended write_generated(const Bundle& bundle, const std::string& processes, const std::vector<Command>& commands) {
    fs::create_directories(bundle.rootfs() / "workspace");
    std::vector<std::string> words = bundle.verb({"spec", "--bundle", bundle.path()});
    words.insert(words.end(), kLimits.begin(), kLimits.end());
    words.insert(words.end(), {"--pids", processes, "--", "/probe"});
    for (const Command& command : commands) {
        if (&command != &commands.front()) words.emplace_back(";");
        words.insert(words.end(), command.begin(), command.end());
    }
    return run_program(words);
}

Outcome run_by(const Peer& peer, const std::string& processes, const std::vector<Command>& commands) {
    const Bundle bundle;
    const Ended written = write_generated(bundle, processes, commands);
    REQUIRE_MESSAGE(written.status == 0, written.err);
    std::vector<std::string> words = peer.command;
    words.insert(words.end(), {"--root", bundle.state_root() / "peer", "run", "--bundle", bundle.path(), bundle.id()});
    const Ended ended = run_program(words);
    fs::remove_all(bundle.state_root() / "peer");
    return {ended.status, ended.out, ended.err};
}

// gVisor's own threads count as processes of the group.
std::string processes_for(const Peer& peer) { return peer.name == "runsc" ? "400" : "20"; }

void check_isolation(const json& report) {
    CHECK(report["credentials"]["uid"][0] == 1000);
    CHECK(report["credentials"]["gid"][0] == 1000);
    CHECK(report["credentials"]["groups"] == json::array());
    for (const json& set : report["capabilities"]) CHECK(set == json::array());
    CHECK(report["no_new_privs"] == 1);
    CHECK(report["seccomp"]["mode"] == 2);
    CHECK(report["interfaces"] == json::array());
    CHECK(report["cwd"] == "/workspace");
    CHECK(report["hosts"]["hostname"] == "sandbox");
    CHECK(report["rlimits"]["RLIMIT_CORE"] == json({0, 0}));
    CHECK(report["rlimits"]["RLIMIT_FSIZE"] == json({40 << 20, 40 << 20}));
    CHECK(has(mount_at(report, "/")["options"], "ro"));
}

}  // namespace

TEST_CASE("runtimes: a generated config isolates under each runtime") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const Peer& peer : peers()) {
        CAPTURE(peer.name);
        if (peer.command.empty()) SKIP_TEST(peer.name + " is not installed");
        const Outcome outcome = run_by(peer, processes_for(peer),
                                       {{"report"},
                                        {"create", "/new", "x"},
                                        {"create", "/tmp/new", "x"},
                                        {"create", "/workspace/new", "x"},
                                        {"statfs", "/tmp"},
                                        {"statfs", "/workspace"}});
        CHECK_MESSAGE(outcome.status == 0, outcome.err);
        check_isolation(outcome.answer());
        CHECK(outcome.answer(1)["ok"] == false);
        CHECK(outcome.answer(2)["ok"] == true);
        CHECK(outcome.answer(3)["ok"] == true);
        CHECK(outcome.answer(4)["bytes"] == 10 << 20);
        CHECK(outcome.answer(5)["bytes"] == 25 << 20);  // the rest is /dev/shm
    }
}

TEST_CASE("runtimes: the limits of a generated config bite under each runtime") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const Peer& peer : peers()) {
        CAPTURE(peer.name);
        if (peer.command.empty()) SKIP_TEST(peer.name + " is not installed");
        if (!peer.has_groups) SKIP_TEST(peer.name + " cannot use the cgroups of this machine");
        CHECK(run_by(peer, processes_for(peer), {{"alloc", "16"}}).status == 0);
        const Outcome greedy = run_by(peer, processes_for(peer), {{"alloc", "128"}});
        CHECK_MESSAGE(greedy.status != 0, greedy.out);
        CHECK(greedy.out == "");
        if (peer.name == "runsc") continue;  // its processes are threads of the host, which have no number in common
        CHECK(run_by(peer, processes_for(peer), {{"fork", "100"}}).answer()["children"] < 20);
    }
}
