// The payload's surroundings: limits, scheduling, directory, environment, and how its program is found.
#include <sys/resource.h>

#include <algorithm>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

constexpr int kSysResource = 24;

std::string variable(const json& report, const std::string& name) {
    for (const json& entry : report["env"]) {
        const std::string text = entry;
        if (text.rfind(name + "=", 0) == 0) return text.substr(name.size() + 1);
    }
    return "(unset)";
}

}  // namespace

TEST_CASE("rlimits: lowered as configured, the others as they were") {
    NEEDS_ROOT();
    Bundle bundle;
    rlimit stack{};
    ::getrlimit(RLIMIT_STACK, &stack);
    bundle.config["process"]["rlimits"] = json::array({{{"type", "RLIMIT_NOFILE"}, {"soft", 100}, {"hard", 200}},
                                                       {{"type", "RLIMIT_CORE"}, {"soft", 0}, {"hard", 0}},
                                                       {{"type", "RLIMIT_FSIZE"}, {"soft", 0}, {"hard", 0}},
                                                       {{"type", "RLIMIT_CPU"}, {"soft", 1000}, {"hard", 2000}}});
    const json limits = report_of(bundle)["rlimits"];
    CHECK(limits["RLIMIT_NOFILE"] == json({100, 200}));
    CHECK(limits["RLIMIT_CORE"] == json({0, 0}));
    CHECK(limits["RLIMIT_FSIZE"] == json({0, 0}));
    CHECK(limits["RLIMIT_CPU"] == json({1000, 2000}));
    CHECK(limits["RLIMIT_STACK"] == json({stack.rlim_cur, stack.rlim_max}));
}

TEST_CASE("rlimits: a program that needs little starts with little address space") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"report"});
    fs::copy_file("/bin/busybox", bundle.rootfs() / "true");
    bundle.config["process"]["args"] = {"/true"};
    bundle.config["process"]["rlimits"] =
        json::array({{{"type", "RLIMIT_AS"}, {"soft", 5'000'000}, {"hard", 5'000'000}}});
    bundle.write_config();
    const Ended ended = run_program(bundle.command_line({}));
    CHECK_MESSAGE(ended.status == 0, ended.err);
}

TEST_CASE("rlimits: raising a hard limit works with CAP_SYS_RESOURCE, is a warning without") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    rlimit open_files{};
    ::getrlimit(RLIMIT_NOFILE, &open_files);
    const rlim_t more = open_files.rlim_max + 1000;
    bundle.config["process"]["rlimits"] = json::array({{{"type", "RLIMIT_NOFILE"}, {"soft", more}, {"hard", more}}});
    const Outcome outcome = run_probe(bundle, {{"report"}});
    CHECK(outcome.status == 0);
    const json limit = outcome.answer()["rlimits"]["RLIMIT_NOFILE"];
    if (has_capability(kSysResource)) {
        CHECK(limit == json({more, more}));
    } else {
        CHECK(limit == json({open_files.rlim_max, open_files.rlim_max}));
        CHECK(outcome.says("RLIMIT_NOFILE"));
    }
}

TEST_CASE("rlimits: a limit on descriptors that leaves none to hear of the start by fails create, and not run") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["rlimits"] = json::array({{{"type", "RLIMIT_NOFILE"}, {"soft", 3}, {"hard", 3}}});
    bundle.probe({"exit", "0"}).write_config();
    CHECK(run(bundle).status == 0);
    const Ended created = run_program(bundle.verb({"create", "--bundle", bundle.path(), bundle.id()}));
    CHECK(created.status == 1);
    CHECK_MESSAGE(created.err.find("RLIMIT_NOFILE of 3 leaves no descriptor") != std::string::npos, created.err);
    CHECK(run_program(bundle.verb({"state", bundle.id()})).status == 1);
}

TEST_CASE("oom_score_adj: set when configured, inherited when not") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["oomScoreAdj"] = 500;
    CHECK(report_of(bundle)["proc"]["oom_score_adj"] == "500\n");
    bundle.config["process"].erase("oomScoreAdj");
    CHECK(report_of(bundle)["proc"]["oom_score_adj"] == read_text("/proc/self/oom_score_adj"));
}

TEST_CASE("personality: a 32-bit machine for those who ask") {
    NEEDS_ROOT();
    if (runtime() == Runtime::runc) SKIP_TEST("this runc knows no personality");
    Bundle bundle;
    bundle.config["linux"]["personality"] = {{"domain", "LINUX32"}};
    const json report = report_of(bundle);
    CHECK(report["hosts"]["machine"] == "i686");
    CHECK(report["personality"] == 8);
}

TEST_CASE("scheduling: policy, nice value and I/O priority") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["scheduler"] = {{"policy", "SCHED_BATCH"}, {"nice", 5}};
    bundle.config["process"]["ioPriority"] = {{"class", "IOPRIO_CLASS_BE"}, {"priority", 6}};
    const json scheduling = report_of(bundle)["scheduling"];
    CHECK(scheduling["policy"] == 3);
    CHECK(scheduling["nice"] == 5);
    CHECK(scheduling["ioprio"] == ((2 << 13) | 6));
}

TEST_CASE("cwd: entered, and made where it is missing") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["cwd"] = "/data";
    CHECK(report_of(bundle)["cwd"] == "/data");
    bundle.config["process"]["cwd"] = "/data/new/directory";
    CHECK(report_of(bundle)["cwd"] == "/data/new/directory");
    CHECK(fs::is_directory(bundle.rootfs() / "data/new/directory"));
}

TEST_CASE("environment: what is configured, and nothing of the caller's") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["env"] = {"PATH=/usr/bin:/bin", "A=1", "B=with = and blanks", "EMPTY=", "HOME=/somewhere"};
    const json report = report_of(bundle, {.spawn = {.env = {"SECRET_OF_THE_CALLER=1"}}});
    CHECK(variable(report, "A") == "1");
    CHECK(variable(report, "B") == "with = and blanks");
    CHECK(variable(report, "EMPTY") == "");
    CHECK(variable(report, "HOME") == "/somewhere");
    CHECK(variable(report, "SECRET_OF_THE_CALLER") == "(unset)");
    for (const json& entry : report["env"]) {
        CAPTURE(entry);
        const std::string name = entry.get<std::string>().substr(0, entry.get<std::string>().find('='));
        const bool known = name == "PATH" || name == "A" || name == "B" || name == "EMPTY" || name == "HOME";
        CHECK(known);
    }
}

TEST_CASE("environment: each variable is there once, as it was said last") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["env"] = {"A=1", "B=1", "A=2", "HOME=/here", "B=", "HOME="};
    const json report = report_of(bundle);
    for (const char* entry : {"A=2", "B=", "HOME=/"})
        CHECK_MESSAGE(std::ranges::count(report["env"], entry) == 1, report["env"].dump());
    CHECK(report["env"].size() == 3);
}

TEST_CASE("environment: HOME comes from the container's /etc/passwd") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.rootfs() / "etc/passwd",
               "root:x:0:0::/root-home:/bin/sh\nother:x:1000:1000::/other-home:/bin/sh\n");
    CHECK(variable(report_of(bundle), "HOME") == "/root-home");
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    CHECK(variable(report_of(bundle), "HOME") == "/other-home");
    bundle.config["process"]["user"] = {{"uid", 1001}, {"gid", 1000}};
    CHECK(variable(report_of(bundle), "HOME") == "/");
}

TEST_CASE("program: found by PATH inside, arguments kept as they are") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.rootfs() / "bin");
    fs::rename(bundle.rootfs() / "probe", bundle.rootfs() / "bin/inside");
    bundle.config["process"]["args"] = {"inside", "report", "", "two words", "\xc3\xa9", "$HOME"};
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 0);
    const json argv = outcome.answer()["argv"];
    CHECK((argv[0] == "inside" || argv[0] == "/bin/inside"));
    CHECK(argv[2] == "");
    CHECK(argv[3] == "two words");
    CHECK(argv[4] == "\xc3\x83\xc2\xa9");  // the probe prints bytes as Latin-1
    CHECK(argv[5] == "$HOME");
}

TEST_CASE("program: a relative path is relative to cwd") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::rename(bundle.rootfs() / "probe", bundle.rootfs() / "data/here");
    bundle.config["process"]["cwd"] = "/data";
    bundle.config["process"]["args"] = {"./here", "report"};
    CHECK(run(bundle).answer()["cwd"] == "/data");
}

TEST_CASE("program: the words that engines look for when it cannot start") {
    NEEDS_ROOT();
    Bundle bundle;
    fs::create_directories(bundle.rootfs() / "bin");
    write_text(bundle.rootfs() / "bin/plain", "no program");
    fs::permissions(bundle.rootfs() / "bin/plain", fs::perms(0644));
    write_text(bundle.rootfs() / "bin/script", "#!/no/such/interpreter\n");
    fs::permissions(bundle.rootfs() / "bin/script", fs::perms(0755));
    struct Case {
        std::string program;
        std::string words;
    };
    for (const Case& each : {Case{"missing", "executable file not found"},
                             Case{"/bin/missing", "no such file or directory"}, Case{"/bin/plain", "permission denied"},
                             Case{"/bin", "permission denied"}, Case{"/bin/script", "no such file or directory"}}) {
        CAPTURE(each.program);
        bundle.config["process"]["args"] = {each.program};
        const Outcome outcome = run(bundle);
        CHECK(outcome.status != 0);
        CHECK_MESSAGE(outcome.says(each.words), outcome.err);
        CHECK(outcome.says(each.program));
        CHECK(outcome.out == "");
    }
}

TEST_CASE("process: the first of a session of its own") {
    NEEDS_ROOT();
    Bundle bundle;
    const json ids = report_of(bundle)["process"];
    CHECK(ids["pid"] == 1);
    CHECK(ids["sid"] == 1);
    CHECK(ids["pgid"] == 1);
}

TEST_CASE("process: the memory policy") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["linux"]["memoryPolicy"] = {
        {"mode", "MPOL_BIND"}, {"nodes", "0"}, {"flags", {"MPOL_F_STATIC_NODES"}}};
    const json report = report_of(bundle);
    CHECK(report["scheduling"]["memory_policy"] == (2 | 1 << 15));
    CHECK(report["scheduling"]["memory_nodes"] == 1);
}
