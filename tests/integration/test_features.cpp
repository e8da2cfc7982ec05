// `features`: every word that it lists is taken, every other is not, and what it denies is refused.
#include <unistd.h>

#include <algorithm>

#include "harness.hpp"
#include "schema.hpp"

using namespace pinfold::integration;

namespace {

json features() {
    const Ended ended = run_program({runtime_command()[0], "features"});
    INFO("stderr: ", ended.err);
    CHECK(ended.status == 0);
    return json::parse(ended.out);
}

// What pinfold says of the config, without running it.
Outcome checked(const Bundle& bundle) { return run(bundle, {.args = {"--dry-run"}}); }

bool accepts(Bundle& bundle, const json::json_pointer& place, const json& value) {
    const json before = bundle.config;
    bundle.config[place] = value;
    const Outcome outcome = checked(bundle);
    bundle.config = before;
    return outcome.status == 0;
}

// Every word of the list, and no other, may stand there.
void check_words(Bundle& bundle, const json& words, const std::string& place) {
    CAPTURE(place);
    CHECK(words.size() > 1);
    for (const json& word : words) {
        CAPTURE(word);
        CHECK(accepts(bundle, json::json_pointer(place), word));
    }
    CHECK_FALSE(accepts(bundle, json::json_pointer(place), "NO_SUCH_WORD"));
}

// A property that a config may use, or is refused for.
struct Property {
    std::string feature;  // a flag of `features`
    std::string place;
    json value;
};

bool is_refused(Bundle& bundle, const std::string& place, const json& value) {
    bundle.config[json::json_pointer(place)] = value;
    const Outcome outcome = checked(bundle);
    std::string path = place.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    return outcome.says(path + ": not supported yet");
}

json rule(const std::string& call, const json& action) { return {{"names", json::array({call})}, {"action", action}}; }

// All the words of seccomp in one profile, on calls that the probe does not make.
json profile_with_all(const json& seccomp) {
    const std::vector<std::string> calls = {"acct",        "add_key",    "bpf",     "kexec_load", "quotactl",
                                            "swapoff",     "swapon",     "vhangup", "reboot",     "settimeofday",
                                            "syslog",      "iopl",       "ioperm",  "modify_ldt", "nfsservctl",
                                            "init_module", "pivot_root", "ustat",   "uselib",     "sysfs"};
    size_t next = 0;
    json rules = json::array();
    for (const json& action : seccomp["actions"]) {
        if (action != "SCMP_ACT_ALLOW" && action != "SCMP_ACT_NOTIFY") rules.push_back(rule(calls.at(next++), action));
    }
    for (const json& op : seccomp["operators"]) {
        json one = rule(calls.at(next++), "SCMP_ACT_ERRNO");
        one["args"] = json::array({{{"index", 0}, {"value", 1}, {"valueTwo", 1}, {"op", op}}});
        rules.push_back(one);
    }
    return {{"defaultAction", "SCMP_ACT_ALLOW"},
            {"architectures", seccomp["archs"]},
            {"flags", seccomp["supportedFlags"]},
            {"syscalls", rules}};
}

}  // namespace

TEST_CASE("features: valid by the specification's schema, the same for any user, and without a word twice") {
    PINFOLD_ONLY();
    const json document = features();
    CHECK(schema_problems(document, "features-schema.json") == std::vector<std::string>{});
    CHECK(document["potentiallyUnsafeConfigAnnotations"] == json::array());
    for (const std::string place : {"/hooks", "/mountOptions", "/linux/namespaces", "/linux/capabilities",
                                    "/linux/seccomp/actions", "/linux/seccomp/archs", "/linux/seccomp/knownFlags"}) {
        CAPTURE(place);
        auto words = document[json::json_pointer(place)].get<std::vector<std::string>>();
        std::sort(words.begin(), words.end());
        CHECK(std::adjacent_find(words.begin(), words.end()) == words.end());
    }

    json wrong = document;
    wrong["linux"]["seccomp"]["actions"].push_back("SCMP_ACT_SING");
    wrong.erase("ociVersionMin");
    CHECK(schema_problems(wrong, "features-schema.json").size() == 2);
    if (::geteuid() != 0) return;
    CHECK(json::parse(run_program({runtime_command()[0], "features"}, {.uid = kNobodySpecial}).out) == document);
}

TEST_CASE("features: its versions are the program's, the oldest and the newest are accepted") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const json document = features();
    const std::string version = run_program({runtime_command()[0], "--version"}).out;
    const auto newest = document["ociVersionMax"].get<std::string>();
    const json& annotations = document["annotations"];
    CHECK(version == "pinfold version " + annotations["org.pinfold.version"].get<std::string>() + "\ncommit: " +
                         annotations["org.pinfold.commit"].get<std::string>() + "\nspec: " + newest + "\n");
    Bundle bundle;
    const json::json_pointer place("/ociVersion");
    CHECK(accepts(bundle, place, document["ociVersionMin"]));
    CHECK(accepts(bundle, place, newest));
    CHECK_FALSE(accepts(bundle, place, "0.9.0"));
}

TEST_CASE("features: the words that it lists are those that a config may use") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const json document = features();
    const json& seccomp = document["linux"]["seccomp"];
    const json& memory = document["linux"]["memoryPolicy"];
    Bundle bundle;
    json others = document["linux"]["namespaces"];
    std::erase_if(others.get_ref<json::array_t&>(), [](const json& type) { return type == "user" || type == "mount"; });
    bundle.config["linux"]["namespaces"] = json::array({{{"type", "mount"}}});
    bundle.config.erase("hostname");  // it would take a uts namespace
    check_words(bundle, others, "/linux/namespaces/1/type");

    bundle.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"},
                                         {"syscalls", json::array({rule("acct", "SCMP_ACT_ERRNO")})}};
    // A rule with that action needs one.
    if (has(seccomp["actions"], "SCMP_ACT_NOTIFY")) bundle.config["linux"]["seccomp"]["listenerPath"] = "/socket";
    check_words(bundle, seccomp["actions"], "/linux/seccomp/syscalls/0/action");
    check_words(bundle, seccomp["archs"], "/linux/seccomp/architectures/0");
    check_words(bundle, seccomp["knownFlags"], "/linux/seccomp/flags/0");
    bundle.config["linux"]["seccomp"]["syscalls"][0]["args"] = json::array({{{"index", 0}, {"value", 1}, {"op", ""}}});
    check_words(bundle, seccomp["operators"], "/linux/seccomp/syscalls/0/args/0/op");

    bundle.config["linux"].erase("seccomp");
    bundle.config["linux"]["memoryPolicy"] = {{"mode", "MPOL_BIND"}, {"nodes", "0"}};
    check_words(bundle, memory["flags"], "/linux/memoryPolicy/flags/0");
    for (const json& mode : memory["modes"]) {
        CAPTURE(mode);
        const bool takes_none = mode == "MPOL_DEFAULT" || mode == "MPOL_LOCAL";
        const json policy = {{"mode", mode}, {"nodes", takes_none ? "" : "0"}};
        CHECK(accepts(bundle, json::json_pointer("/linux/memoryPolicy"), policy));
    }
}

TEST_CASE("features: each mount option is one of pinfold's own, and no file system sees it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const json options = features()["mountOptions"];
    CHECK(options.size() > 40);
    Bundle bundle;
    size_t mounted = 0;
    for (const json& option : options) {
        // These ask for more than a file system to mount; the tests of mounts have them.
        if (has({"bind", "rbind", "remount", "idmap", "ridmap"}, option)) continue;
        bundle.mount("/tmp/" + option.get<std::string>(), "tmpfs", "tmpfs", {option});
        ++mounted;
    }
    CHECK(options.size() == mounted + 5);
    const json report = report_of(bundle);
    for (const json& option : options) {
        if (has({"bind", "rbind", "remount", "idmap", "ridmap"}, option)) continue;
        CHECK(mount_at(report, "/tmp/" + option.get<std::string>())["type"] == "tmpfs");
    }

    CHECK_FALSE(has(options, "size=1m"));
    bundle.mount("/tmp/other", "tmpfs", "tmpfs", {"no-such-option"});
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says("/tmp/other"));
}

TEST_CASE("features: every capability is known") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const json capabilities = features()["linux"]["capabilities"];
    CHECK(capabilities.size() >= 41);
    CHECK(capabilities[0] == "CAP_CHOWN");
    Bundle bundle;
    bundle.config["process"]["capabilities"] = {{"bounding", capabilities}};
    CHECK_FALSE(checked(bundle).says("not known"));
    bundle.config["process"]["capabilities"] = {{"bounding", {"CAP_SING"}}};
    CHECK(checked(bundle).says("CAP_SING is not known"));
}

TEST_CASE("features: a profile with every word of seccomp can be loaded") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const json seccomp = features()["linux"]["seccomp"];
    CHECK(seccomp["enabled"] == true);
    Bundle bundle;
    bundle.config["linux"]["seccomp"] = profile_with_all(seccomp);
    CHECK(report_of(bundle)["seccomp"]["mode"] == 2);
}

TEST_CASE("features: what it denies is refused, what it claims is not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const json document = features();
    const json hook = json::array({{{"path", "/bin/true"}}});
    for (const std::string name :
         {"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}) {
        CAPTURE(name);
        Bundle bundle;
        CHECK(is_refused(bundle, "/hooks/" + name, hook) != has(document["hooks"], name));
    }
    for (const Property& property :
         {Property{"/apparmor/enabled", "/process/apparmorProfile", "some-profile"},
          Property{"/selinux/enabled", "/process/selinuxLabel", "a:b:c:s0"},
          Property{"/intelRdt/enabled", "/linux/intelRdt", {{"closID", "some"}}},
          Property{"/netDevices/enabled", "/linux/netDevices", {{"eth9", json::object()}}},
          Property{"/cgroup/rdma", "/linux/resources/rdma", {{"mlx5_1", {{"hcaHandles", 3}}}}}}) {
        CAPTURE(property.place);
        Bundle bundle;
        const bool claimed = document["linux"][json::json_pointer(property.feature)].get<bool>();
        CHECK(is_refused(bundle, property.place, property.value) != claimed);
    }
    Bundle listening;
    listening.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"}};
    CHECK(is_refused(listening, "/linux/seccomp/listenerPath", "/socket") !=
          has(document["linux"]["seccomp"]["actions"], "SCMP_ACT_NOTIFY"));

    Bundle limited;
    limited.config["linux"]["resources"] = {{"pids", {{"limit", 100}}}};
    const Outcome systemd = run(limited, {.global = {"--systemd-cgroup"}, .args = {"--dry-run"}});
    CHECK(systemd.says("systemd cgroup manager is not supported by this build") ==
          !document["linux"]["cgroup"]["systemd"]);
}
