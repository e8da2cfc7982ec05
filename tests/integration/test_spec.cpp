// `spec`: the config that it writes is valid, runs as it is, for root and for a normal user, and replaces nothing.
#include <sys/stat.h>

#include "harness.hpp"
#include "schema.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

SpawnOptions user_in(const Bundle& bundle) {
    return {.uid = kNobodySpecial, .env = {"HOME=/", "XDG_RUNTIME_DIR="}, .directory = bundle.path()};
}

Ended write_spec(const Bundle& bundle, const std::vector<std::string>& options, const SpawnOptions& spawn = {}) {
    std::vector<std::string> words = bundle.verb({"spec"});
    words.insert(words.end(), options.begin(), options.end());
    return run_program(words, spawn);
}

json written(const Bundle& bundle) { return json::parse(read_text(bundle.path() / "config.json")); }

// The config as it was written, terminal and all, but for the program.
json report_of_spec(Bundle& bundle, SpawnOptions spawn) {
    bundle.config = written(bundle);
    bundle.probe({"report"});
    Terminal terminal(24, 80);
    const int fd = terminal.slave();
    spawn.fds = {{0, fd}, {1, fd}, {2, fd}};
    spawn.own_terminal = true;
    const auto running = start(bundle, {.spawn = spawn});
    const std::string line = terminal.read_line();
    CHECK(running->finish().status == 0);
    const json report = json::parse(line, nullptr, false);
    if (report.is_discarded()) FAIL("not a report: " << line);
    return report;
}

void check_isolation(const json& report) {
    for (const std::string name : {"cgroup", "ipc", "mnt", "net", "pid", "uts"}) {
        CAPTURE(name);
        CHECK(report["namespaces"][name] != own_namespace(name));
    }
    CHECK(report["terminals"][0]["tty"] == true);
    CHECK(report["hosts"]["hostname"] == "pinfold");
    CHECK(report["no_new_privs"] == 1);
    CHECK(report["capabilities"]["effective"] == json({"CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_AUDIT_WRITE"}));
    CHECK(report["capabilities"]["effective"] == report["capabilities"]["bounding"]);
    CHECK(report["rlimits"]["RLIMIT_NOFILE"] == json({1024, 1024}));
    CHECK(has(mount_at(report, "/")["options"], "ro"));
    CHECK(has(mount_at(report, "/sys")["options"], "ro"));
    CHECK(has(mount_at(report, "/proc/sys")["options"], "ro"));
    CHECK(mount_at(report, "/proc/keys")["type"] != "proc");
    CHECK(mount_at(report, "/sys/fs/cgroup")["type"] == "cgroup2");
    for (const char* point : {"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"}) mount_at(report, point);
}

}  // namespace

TEST_CASE("spec: writes a valid config, always the same, and nothing else") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--rootless"}}) {
        Bundle here, there;
        CHECK(write_spec(here, options, {.directory = here.path(), .umask = 027}).status == 0);
        std::vector<std::string> elsewhere = {"--bundle", there.path()};
        elsewhere.insert(elsewhere.end(), options.begin(), options.end());
        CHECK(write_spec(there, elsewhere).status == 0);
        CHECK(read_text(here.path() / "config.json") == read_text(there.path() / "config.json"));
        CHECK(schema_problems(written(here), "config-schema.json") == std::vector<std::string>{});
        CHECK(written(here)["process"]["args"] == json({"sh"}));
        CHECK(written(here)["process"]["terminal"] == true);
        struct stat info {};
        REQUIRE(::stat((here.path() / "config.json").c_str(), &info) == 0);
        CHECK((info.st_mode & 07777) == 0640);
        CHECK(info.st_nlink == 1);
        const Ended plan = verb(here, {"run", "--bundle", here.path(), "--dry-run", here.id()});
        CHECK_MESSAGE(plan.status == 0, plan.err);
        CHECK(plan.err == "");
    }
}

TEST_CASE("spec: with limits it is valid too, and the same wherever it is written") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle here, there;
    for (const Bundle* bundle : {&here, &there})
        CHECK(write_spec(*bundle, {"--bundle", bundle->path(), "--memory", "64m", "--", "sh"}).status == 0);
    CHECK(read_text(here.path() / "config.json") == read_text(there.path() / "config.json"));
    CHECK(schema_problems(written(here), "config-schema.json") == std::vector<std::string>{});
}

TEST_CASE("spec: never replaces a config") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.path() / "config.json", "precious");
    const Ended ended = write_spec(bundle, {"--bundle", bundle.path()});
    CHECK(ended.status == 1);
    CHECK(ended.out == "");
    CHECK(ended.err.find(bundle.path() / "config.json") != std::string::npos);
    CHECK(ended.err.find("hint: ") != std::string::npos);
    CHECK(read_text(bundle.path() / "config.json") == "precious");

    // Nor what a link leads to, where that is nothing yet.
    fs::remove(bundle.path() / "config.json");
    fs::create_symlink(bundle.host() / "elsewhere", bundle.path() / "config.json");
    CHECK(write_spec(bundle, {"--bundle", bundle.path()}).status == 1);
    CHECK(fs::is_symlink(bundle.path() / "config.json"));
    CHECK_FALSE(fs::exists(bundle.host() / "elsewhere"));
}

TEST_CASE("spec: a directory that is not there, or not the caller's, is named") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const Ended nowhere = write_spec(bundle, {"--bundle", bundle.host() / "nowhere"});
    CHECK(nowhere.status == 1);
    CHECK(nowhere.err.find("/nowhere: does not exist") != std::string::npos);
    const Ended forbidden = write_spec(bundle, {"--bundle", bundle.path()}, user_in(bundle));
    CHECK(forbidden.status == 1);
    CHECK(forbidden.err.find(bundle.path()) != std::string::npos);
}

TEST_CASE("spec: root can run it at once") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    REQUIRE(write_spec(bundle, {"--bundle", bundle.path()}).status == 0);
    const json report = report_of_spec(bundle, {});
    check_isolation(report);
    CHECK(report["namespaces"]["user"] == own_namespace("user"));
    CHECK(has(mount_at(report, "/dev/pts")["super"], "gid=5"));
}

TEST_CASE("spec: with --rootless a normal user can run it at once") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.make_rootless(kNobodySpecial);
    fs::remove(bundle.path() / "config.json");
    REQUIRE(write_spec(bundle, {"--rootless"}, user_in(bundle)).status == 0);
    const json report = report_of_spec(bundle, user_in(bundle));
    check_isolation(report);
    CHECK(report["namespaces"]["user"] != own_namespace("user"));
    CHECK(report["credentials"]["uid"] == json({0, 0, 0, 0}));
    CHECK_FALSE(written(bundle)["linux"].contains("resources"));
    CHECK(written(bundle)["linux"]["uidMappings"][0]["hostID"] == kNobodySpecial);
}

TEST_CASE("state: valid by the specification's schema in each status") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["annotations"] = {{"org.example.key", "a value"}, {"other", ""}};
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::created);
    std::vector<std::string> seen;
    const auto check = [&] {
        const json state = json::parse(container.must({"state", bundle.id()}));
        CHECK(schema_problems(state, "state-schema.json") == std::vector<std::string>{});
        seen.push_back(state["status"]);
    };
    check();
    container.must({"start", bundle.id()});
    check();
    container.must({"kill", bundle.id(), "KILL"});
    container.await_end();
    check();
    CHECK(seen == std::vector<std::string>{"created", "running", "stopped"});
    json wrong = json::parse(container.must({"state", bundle.id()}));
    wrong["status"] = "unheard of";
    CHECK(schema_problems(wrong, "state-schema.json").size() == 1);
}
