// Configs that must be refused: exit code 1, every problem with its JSON path, and nothing touched.
#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

struct Refusal {
    std::string pointer;  // JSON pointer of what is changed; "-" appends
    json value;
    std::string named;  // how the message names it
};

// A table.
const std::vector<Refusal>& refusals() {  // NOLINT(readability-function-size)
    static const std::vector<Refusal> table = {
        {"/ociVersion", "2.0.0", "ociVersion"},
        {"/ociVersion", 1, "ociVersion"},
        {"/root", nullptr, "root"},
        {"/root/path", "", "root.path"},
        {"/root/readonly", "yes", "root.readonly"},
        {"/process", nullptr, "process"},
        {"/process/args", json::array(), "process.args"},
        {"/process/args", "sh", "process.args"},
        {"/process/args/0", 7, "process.args[0]"},
        {"/process/args/0", std::string("a\0b", 3), "process.args[0]"},
        {"/process/cwd", "relative", "process.cwd"},
        {"/process/cwd", "", "process.cwd"},
        {"/process/user/uid", -1, "process.user.uid"},
        {"/process/user/gid", 4294967296, "process.user.gid"},
        {"/process/user/additionalGids", {1, "two"}, "process.user.additionalGids[1]"},
        {"/process/rlimits/0/type", "RLIMIT_NOSUCH", "process.rlimits[0].type"},
        {"/process/rlimits/0/soft", 2000, "process.rlimits[0].soft"},
        {"/process/rlimits/1", {{"type", "RLIMIT_NOFILE"}, {"soft", 1}, {"hard", 1}}, "process.rlimits[1]"},
        {"/process/oomScoreAdj", 1001, "process.oomScoreAdj"},
        {"/process/noNewPrivileges", 1, "process.noNewPrivileges"},
        {"/hostname", std::string(65, 'h'), "hostname"},
        {"/mounts/0/destination", nullptr, "mounts[0].destination"},
        {"/mounts/0/destination", "", "mounts[0].destination"},
        {"/mounts/0/destination", "/", "mounts[0].destination"},
        {"/mounts/0/destination", "/data/..", "mounts[0].destination"},
        {"/mounts/0/options", "ro", "mounts[0].options"},
        {"/linux/namespaces/0/type", "nosuch", "linux.namespaces[0].type"},
        {"/linux/namespaces/5", {{"type", "pid"}}, "linux.namespaces[5]"},
        {"/linux/namespaces/0/path", "relative/path", "linux.namespaces[0].path"},
        {"/linux/uidMappings", json::array({{{"containerID", 0}, {"hostID", 0}, {"size", 1}}}), "linux.uidMappings"},
        {"/linux/timeOffsets", {{"monotonic", {{"secs", 1}}}}, "linux.timeOffsets"},
        {"/linux/devices", json::array({{{"path", "relative"}, {"type", "c"}, {"major", 1}, {"minor", 3}}}),
         "linux.devices[0].path"},
        {"/linux/devices", json::array({{{"path", "/dev/x"}, {"type", "z"}, {"major", 1}, {"minor", 3}}}),
         "linux.devices[0].type"},
        {"/linux/maskedPaths/1", "relative", "linux.maskedPaths[1]"},
        {"/linux/readonlyPaths/0", "relative", "linux.readonlyPaths[0]"},
        {"/linux/rootfsPropagation", "sideways", "linux.rootfsPropagation"},
        {"/linux/cgroupsPath", "/a/../../b", "linux.cgroupsPath"},
        {"/linux/sysctl", {{"kernel.panic", "1"}}, "kernel.panic"},
        {"/linux/sysctl", {{"net/../kernel/core_pattern", "x"}}, "core_pattern"},
        {"/linux/personality", {{"domain", "PLAN9"}}, "linux.personality.domain"},
        {"/linux/resources/devices/0/access", "rwx", "linux.resources.devices[0].access"},
        {"/linux/resources/pids", {{"limit", "many"}}, "linux.resources.pids.limit"},
        {"/linux/seccomp", {{"defaultAction", "SCMP_ACT_NOSUCH"}}, "linux.seccomp.defaultAction"},
        {"/linux/seccomp",
         {{"defaultAction", "SCMP_ACT_ALLOW"}, {"syscalls", json::array({{{"names", {"dup"}}, {"action", "NO"}}})}},
         "linux.seccomp.syscalls[0].action"},
        {"/linux/seccomp",
         {{"defaultAction", "SCMP_ACT_ALLOW"}, {"architectures", {"SCMP_ARCH_VAX"}}},
         "linux.seccomp.architectures[0]"},
        {"/annotations",
         {{"org.pinfold.strict", "yes"}},
         R"(annotations["org.pinfold.strict"]: found "yes", allowed: )"},
        {"/annotations", {{"org.pinfold.strict", "1"}}, R"(annotations["org.pinfold.strict"])"},
        {"/annotations", {{"org.pinfold.landlock", "TRUE"}}, R"(annotations["org.pinfold.landlock"]: found "TRUE")"},
        {"/annotations",
         {{"org.pinfold.landlock.tcp-bind", "none"}},
         R"(annotations["org.pinfold.landlock.tcp-bind"]: needs )"},
        {"/annotations",
         {{"org.pinfold.landlock.tcp-connect", "80"}, {"org.pinfold.landlock", "false"}},
         R"(annotations["org.pinfold.landlock.tcp-connect"]: needs )"},
        {"/annotations",
         {{"org.pinfold.landlock.tcp-bind", "80,http"}, {"org.pinfold.landlock", "true"}},
         R"(annotations["org.pinfold.landlock.tcp-bind"]: found "80,http", allowed: any, none, or TCP ports)"},
    };
    return table;
}

void set(json& config, const std::string& pointer, const json& value) {
    const json::json_pointer place(pointer);
    if (value.is_null()) config[place.parent_pointer()].erase(place.back());
    else config[place] = value;
}

}  // namespace

TEST_CASE("refusals: each wrong config by itself") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const json good = bundle.config;
    bundle.write_config();
    const std::string before = bundle.listing();
    for (const Refusal& each : refusals()) {
        CAPTURE(each.pointer);
        CAPTURE(each.value);
        bundle.config = good;
        set(bundle.config, each.pointer, each.value);
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK_MESSAGE(outcome.says(each.named), outcome.err);
        CHECK(outcome.out == "");
        CHECK(bundle.listing() == before);
        CHECK(cgroups_named(bundle.id()).empty());
    }
}

TEST_CASE("refusals: hints can be followed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const auto told = [](const Ended& ended, const std::string& words) {
        CHECK(ended.status != 0);
        CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
        return ended.err;
    };
    told(verb(bundle, {"--log-format", "jsn", "list"}), "hint: pinfold --help lists");
    told(verb(bundle, {"list", "--format", "jsn"}), "hint: pinfold list --help lists");
    told(verb(bundle, {"sandbox", "--cpus", "zero", "--", "true"}),
         "--cpus 'zero': expected a number: processors, as in ");
    told(verb(bundle, {"sandbox", "--pids", "abc", "--", "true"}), "--pids 'abc': expected a number: processes and ");
    bundle.write_config();
    const std::string none = bundle.host() / "none.json";
    const std::string missing = told(verb(bundle, {"run", "-f", none, "-b", bundle.path(), bundle.id()}), none);
    CHECK(missing.find("hint:") == std::string::npos);
    const std::string link = bundle.host() / "link";
    fs::create_symlink(none, link);
    told(verb(bundle, {"--audit", link, "sandbox", "--", "true"}), "hint: a log must not be a symbolic link");
    {
        const SystemPolicy policy(bundle, "{}");
        const SpawnOptions sudo{.env = {"SUDO_UID=" + std::to_string(kNobodySpecial), "SUDO_COMMAND="}};
        told(run_program(bundle.verb({"run", "-b", bundle.path(), bundle.id()}), sudo),
             "verbs: 'run' is not allowed to who comes by sudo, where verbs does not list it");
    }
    bundle.config["linux"]["resources"]["pids"] = {{"limit", 10}};
    bundle.make_rootless(kNobodySpecial);
    const Outcome limited = run(bundle, {.spawn = {.uid = kNobodySpecial}});
    if (limited.status == 0) return;  // it has cgroups of its own
    CHECK_MESSAGE(limited.says("or leave these limits out"), limited.err);
    CHECK_FALSE(limited.says("--cgroup-manager disabled"));
}

TEST_CASE("refusals: an annotation of pinfold's that it does not know is told, as no error") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["annotations"] = {
        {"org.pinfold.strikt", "true"}, {"org.other", "x"}, {"org.pinfold.strict", "false"}};
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 0);
    CHECK_MESSAGE(outcome.says(R"(annotations["org.pinfold.strikt"]: not known, and ignored)"), outcome.err);
    CHECK_FALSE(outcome.says("org.other"));
}

TEST_CASE("refusals: a mount over the root itself, by a symlink of the image") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* type : {"tmpfs", "bind"}) {
        Bundle bundle;
        fs::create_symlink("../..", bundle.rootfs() / "link");
        if (std::string_view(type) == "bind") bundle.bind(bundle.host(), "/link");
        else bundle.mount("/link", type, type, {});
        const Outcome outcome = run(bundle);
        CHECK(outcome.status == 1);
        CHECK_MESSAGE(outcome.says("/link"), outcome.err);
        CHECK_MESSAGE(outcome.says("the destination is the root itself"), outcome.err);
    }
}

TEST_CASE("refusals: all problems at once") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["cwd"] = "relative";
    bundle.config["process"]["rlimits"][0]["type"] = "RLIMIT_NOSUCH";
    bundle.config["mounts"][2]["destination"] = "";
    bundle.config["linux"]["namespaces"][1]["type"] = "nosuch";
    bundle.config["linux"]["seccomp"] = {{"defaultAction", "NO"}};
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    for (const std::string& path :
         std::vector<std::string>{"process.cwd", "process.rlimits[0].type", "mounts[2].destination",
                                  "linux.namespaces[1].type", "linux.seccomp.defaultAction"}) {
        CAPTURE(path);
        CHECK_MESSAGE(outcome.says(path), outcome.err);
    }
}

TEST_CASE("refusals: text that is no JSON, or JSON that says a thing twice") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string good = bundle.config.dump();
    for (const std::string& text :
         std::vector<std::string>{"", "{", "[]", "null", "{\"ociVersion\": 1e999}", good + "x",
                                  "{\"root\":{\"path\":\"/\"}," + good.substr(1), std::string(2000, '[')}) {
        CAPTURE(text.substr(0, 60));
        write_text(bundle.path() / "config.json", text);
        const Ended ended = run_program(bundle.command_line({}));
        CHECK(ended.status == 1);
        CHECK(ended.err.find("config.json") != std::string::npos);
    }
}

TEST_CASE("refusals: what a newer version may bring is let pass") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["ociVersion"] = runtime() == Runtime::pinfold ? "1.9.0" : "1.0.2";
    bundle.config["futureProperty"] = {{"a", 1}};
    bundle.config["linux"]["futureProperty"] = {1, 2, 3};
    CHECK(run(bundle).status == 0);
}
