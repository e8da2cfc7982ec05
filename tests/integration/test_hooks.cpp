// Hooks: when, where and with what they run, and what their failures do.
#include <signal.h>

#include <sstream>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

json shell(const std::string& script) { return {{"path", "/bin/sh"}, {"args", {"sh", "-c", script}}}; }

// Appends its name, the state's status and its mount namespace to a file on the host.
json recorder(const Bundle& bundle, const std::string& name) {
    const std::string file = bundle.host() / "log";
    return shell("echo " + name +
                 " $(sed -n 's/.*\"status\": \"\\(.*\\)\".*/\\1/p') $(readlink /proc/self/ns/mnt) >> " + file);
}

// A payload of its own kind: the probe writes a file inside.
json inside(const std::vector<std::string>& words) {
    json args = {"probe"};
    for (const std::string& word : words) args.push_back(word);
    return {{"path", "/probe"}, {"args", args}};
}

std::vector<std::vector<std::string>> log_of(const Bundle& bundle) {
    std::vector<std::vector<std::string>> lines;
    std::istringstream text(fs::exists(bundle.host() / "log") ? read_text(bundle.host() / "log") : "");
    for (std::string line; std::getline(text, line);) {
        std::istringstream words(line);
        lines.emplace_back();
        for (std::string word; words >> word;) lines.back().push_back(word);
    }
    return lines;
}

std::vector<std::string> names_in(const Bundle& bundle) {
    std::vector<std::string> names;
    for (const auto& line : log_of(bundle)) names.push_back(line.at(0));
    return names;
}

void record_all(Bundle& bundle) {
    for (const char* kind : {"prestart", "createRuntime", "createContainer", "poststart", "poststop"}) {
        bundle.config["hooks"][kind] = json::array({recorder(bundle, kind)});
    }
    bundle.config["hooks"]["startContainer"] = json::array({inside({"write", "/data/hook", "ran"})});
    write_text(bundle.rootfs() / "data/hook", "");
}

}  // namespace

TEST_CASE("hooks: in order, in their namespaces, with the state") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"wait-signal"});
    record_all(bundle);
    using Names = std::vector<std::string>;
    {
        const Container container(bundle, Container::As::created);
        CHECK(names_in(bundle) == Names{"prestart", "createRuntime", "createContainer"});
        CHECK(read_text(bundle.rootfs() / "data/hook").empty());
        const std::string container_mounts =
            fs::read_symlink("/proc/" + std::to_string(container.pid()) + "/ns/mnt").string();
        container.must({"start", bundle.id()});
        CHECK(names_in(bundle) == Names{"prestart", "createRuntime", "createContainer", "poststart"});
        CHECK(read_text(bundle.rootfs() / "data/hook") == "ran");
        const auto log = log_of(bundle);
        CHECK(log[0] == Names{"prestart", "created", own_namespace("mnt")});
        CHECK(log[1] == Names{"createRuntime", "created", own_namespace("mnt")});
        CHECK(log[2] == Names{"createContainer", "created", container_mounts});
        CHECK(log[3] == Names{"poststart", "running", own_namespace("mnt")});
    }
    CHECK(log_of(bundle).at(4) == Names{"poststop", "stopped", own_namespace("mnt")});
}

TEST_CASE("hooks: run has them all too") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    record_all(bundle);
    const Outcome outcome = run_probe(bundle, {{"read", "/data/hook"}});
    CHECK_MESSAGE(outcome.status == 0, outcome.err);
    CHECK(outcome.answer()["text"] == "ran");
    CHECK(names_in(bundle) ==
          std::vector<std::string>{"prestart", "createRuntime", "createContainer", "poststart", "poststop"});
}

TEST_CASE("hooks: the state has id, pid and bundle, and the environment is the hook's own") {
    NEEDS_ROOT();
    Bundle bundle;
    const std::string file = bundle.host() / "state";
    json hook = shell("cat > " + file + "; echo $SECRET$OWN > " + file + ".env");
    hook["env"] = {"OWN=mine"};
    bundle.config["hooks"]["createRuntime"] = json::array({hook});
    bundle.config["annotations"] = {{"key", "value"}};
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::created, {.spawn = {.env = {"SECRET=leaked"}}});
    const json state = json::parse(read_text(file));
    CHECK(state["id"] == bundle.id());
    CHECK(state["pid"] == container.pid());
    CHECK(state["bundle"] == bundle.path().string());
    CHECK(state["annotations"]["key"] == "value");
    CHECK(read_text(file + ".env") == "mine\n");
}

TEST_CASE("hooks: what prestart does to the container's network is there for the payload") {
    NEEDS_ROOT();
    Bundle bundle;
    // As Docker's does: finds the network namespace by the pid in the state.
    bundle.config["hooks"]["prestart"] =
        json::array({shell("pid=$(sed -n 's/.*\"pid\": *\\([0-9]*\\).*/\\1/p'); "
                           "exec /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin ip link add hooked netns "
                           "/proc/$pid/ns/net type bridge")});
    bundle.config["linux"]["sysctl"] = {{"net.ipv4.conf.hooked.rp_filter", "2"}};
    const json report = report_of(bundle);
    bool found = false;
    for (const json& interface : report["interfaces"]) found = found || interface["name"] == "hooked";
    CHECK(found);
}

TEST_CASE("hooks: a caller that ignores SIGCHLD does not hide how they end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    record_all(bundle);
    bundle.probe({"wait-signal"}).write_config();
    const SpawnOptions ignoring{.ignored_signals = {SIGCHLD}};
    const auto must = [&](const std::vector<std::string>& words) {
        const Ended ended = run_program(bundle.verb(words), ignoring);
        CHECK_MESSAGE(ended.status == 0, ended.err);
        CHECK(ended.err == "");
    };
    must({"create", "--bundle", bundle.path(), bundle.id()});
    must({"start", bundle.id()});
    const Ended shown = run_program(bundle.verb({"ps", bundle.id(), "--no-such-option"}), ignoring);
    CHECK(shown.status == 1);
    must({"delete", "--force", bundle.id()});
    CHECK(names_in(bundle) ==
          std::vector<std::string>{"prestart", "createRuntime", "createContainer", "poststart", "poststop"});
}

// The root lies in the host's tree while this hook runs. Over "/", it was what "/.." led to, and the image's program
// ran with all rights.
TEST_CASE("hooks: a path that leads through the host's root leads to the host's program, not to the image's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool user_namespace : {false, true}) {
        CAPTURE(user_namespace);
        Bundle bundle;
        const fs::path program = bundle.host() / "hook";
        const fs::path decoy = bundle.rootfs() / program.relative_path();
        const auto write_program = [&](const fs::path& path, const std::string& word) {
            fs::create_directories(path.parent_path());
            write_text(path, "#!/bin/sh\necho " + word + " >> " + (bundle.host() / "log").string() + "\n");
            fs::permissions(path, fs::perms(0755));
        };
        write_program(program, "host");
        write_program(decoy, "image");
        write_text(bundle.host() / "log", "");
        fs::permissions(bundle.host() / "log", fs::perms(0666));
        fs::create_symlink("../../../../../../../../.." + program.string(), bundle.host() / "link");
        if (user_namespace) {
            bundle.add_namespace("user");
            bundle.config["linux"]["uidMappings"] =
                json::array({{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}});
            bundle.config["linux"]["gidMappings"] = bundle.config["linux"]["uidMappings"];
        }
        bundle.config["hooks"]["createContainer"] = json::array({{{"path", "/usr/.." + program.string()}},
                                                                 {{"path", bundle.host() / "link"}},
                                                                 shell("cd /usr/..; ." + program.string())});
        const Outcome outcome = run_probe(bundle, {{"exit", "0"}});
        CHECK_MESSAGE(outcome.status == 0, outcome.err);
        CHECK(names_in(bundle) == std::vector<std::string>{"host", "host", "host"});
    }
}

TEST_CASE("hooks: one that fails before the start undoes the container, and poststop hooks run") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* kind : {"prestart", "createRuntime", "createContainer"}) {
        CAPTURE(kind);
        Bundle bundle;
        bundle.config["hooks"][kind] = json::array({shell("echo the last words >&2; exit 3")});
        bundle.config["hooks"]["poststop"] = json::array({recorder(bundle, "poststop")});
        bundle.write_config();
        check_refused(verb(bundle, {"create", "--bundle", bundle.path(), bundle.id()}),
                      "hooks." + std::string(kind) + "[0] /bin/sh: ended with exit code 3: the last words");
        CHECK_FALSE(exists(bundle));
        CHECK(names_in(bundle) == std::vector<std::string>{"poststop"});
    }
}

TEST_CASE("hooks: startContainer and poststart that fail end the container") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::pair<const char*, json> failing[] = {{"startContainer", inside({"exit", "4"})},
                                                    {"poststart", shell("exit 4")}};
    for (const auto& each : failing) {
        CAPTURE(each.first);
        Bundle bundle;
        bundle.probe({"wait-signal"});
        bundle.config["hooks"][each.first] = json::array({each.second});
        bundle.config["hooks"]["poststop"] = json::array({recorder(bundle, "poststop")});
        const Container container(bundle, Container::As::created);
        check_refused(verb(bundle, {"start", bundle.id()}), "ended with exit code 4");
        container.await_end();
        CHECK_FALSE(exists(bundle));
        CHECK(names_in(bundle) == std::vector<std::string>{"poststop"});
    }
}

TEST_CASE("hooks: a poststop hook that fails is a warning, and the next one runs") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["hooks"]["poststop"] = json::array({shell("exit 5"), recorder(bundle, "second")});
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::created);
    const Ended deleted = verb(bundle, {"delete", bundle.id()});
    CHECK(deleted.status == 0);
    CHECK(deleted.err.find("warning: hooks.poststop[0] /bin/sh: ended with exit code 5") != std::string::npos);
    CHECK(names_in(bundle) == std::vector<std::string>{"second"});
}

TEST_CASE("hooks: one that takes longer than its timeout is ended with all it has started") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    json hook = shell("sleep 1000 & sleep 1000");
    hook["timeout"] = 1;
    bundle.config["hooks"]["prestart"] = json::array({hook});
    bundle.write_config();
    check_refused(verb(bundle, {"create", "--bundle", bundle.path(), bundle.id()}), "took longer than its timeout");
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("hooks: a program that is not there") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["hooks"]["prestart"] = json::array({{{"path", "/no/such/hook"}}});
    bundle.write_config();
    check_refused(verb(bundle, {"create", "--bundle", bundle.path(), bundle.id()}),
                  "hooks.prestart[0] /no/such/hook: ended with exit code 127");
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("hooks: no descriptor of pinfold's or of its caller's reaches them") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string file = bundle.host() / "fds";
    bundle.probe({"wait-signal"});
    bundle.config["hooks"]["prestart"] = json::array({shell("echo /proc/self/fd/* > " + file)});
    const Container container(bundle, Container::As::created);
    // The shell that expands the pattern has opened the directory itself.
    CHECK(read_text(file) == "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n");
}

TEST_CASE("hooks: --dry-run tells them all, those after the start and the end too") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    record_all(bundle);
    const Outcome told = run(bundle, {.args = {"--dry-run"}});
    CHECK(told.status == 0);
    for (const char* kind :
         {"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}) {
        CAPTURE(std::string(kind));
        CHECK(told.out.find(std::string(kind) + ": run /") != std::string::npos);
    }
    CHECK(names_in(bundle).empty());
}
