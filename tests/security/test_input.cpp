// Lengths and characters that somebody did not expect.
#include <algorithm>

#include "attacks.hpp"
#include "cp.hpp"

namespace pinfold::integration {

namespace {

constexpr size_t kMuch = 70'000;  // more than 16 bits count

json many_mappings(size_t count, size_t first) {
    json mappings = json::array();
    for (size_t i = 0; i < count; ++i) mappings.push_back({{"containerID", i}, {"hostID", first + 2 * i}, {"size", 1}});
    return mappings;
}

}  // namespace

TEST_CASE("CVE-2021-43784: mappings, paths and words of more than 64 KiB") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::string much(kMuch, 'x');
    const std::string path = "/" + much;
    struct Row {
        const char* name;
        void (*change)(Bundle&, const std::string&);
        const char* words;
    };
    const Row rows[] = {
        {"a namespace's path", [](Bundle& b, const std::string& p) { b.add_namespace("network", p); }, "namespace"},
        {"a mount's destination", [](Bundle& b, const std::string& p) { b.mount(p, "tmpfs", "t", {}); }, "mounts[6]"},
        {"a mount's source", [](Bundle& b, const std::string& p) { b.bind(p, "/data"); }, "mounts[6]"},
        {"a mount's option", [](Bundle& b, const std::string& p) { b.mount("/data", "tmpfs", "t", {"size=" + p}); },
         "mounts[6]"},
        {"a host name", [](Bundle& b, const std::string& p) { b.config["hostname"] = p; }, "hostname"},
        {"a working directory", [](Bundle& b, const std::string& p) { b.config["process"]["cwd"] = p; }, "cwd"},
        {"a root", [](Bundle& b, const std::string& p) { b.config["root"]["path"] = p; }, "root.path"},
        {"a group", [](Bundle& b, const std::string& p) { b.config["linux"]["cgroupsPath"] = p; }, "cgroup"},
        {"a sysctl",
         [](Bundle& b, const std::string& p) {
             b.config["linux"]["sysctl"] = {{"net." + p, "1"}};
         },
         "net."},
        {"a device",
         [](Bundle& b, const std::string& p) {
             b.config["linux"]["devices"] = {{{"path", p}, {"type", "p"}}};
         },
         "xxx"},
        {"a program", [](Bundle& b, const std::string& p) { b.config["process"]["args"] = {p}; }, "xxx"},
    };
    for (const Row& row : rows) {
        Bundle bundle;
        INFO(std::string(row.name));
        row.change(bundle, path);
        const Outcome outcome = run(bundle);
        CHECK_MESSAGE(outcome.says(row.words), outcome.err.substr(0, 300));
        WITHSTANDS(row.name, outcome.status != 0 && outcome.says(row.words));
        CHECK_MESSAGE(outcome.err.starts_with("pinfold: "), outcome.err.substr(0, 300));
    }
    // What may be that long arrives whole.
    Bundle bundle;
    bundle.config["process"]["env"].push_back("LONG=" + much);
    bundle.config["annotations"] = {{"long", much}, {much, "long"}};
    bundle.config["linux"]["maskedPaths"].push_back("/proc/" + much);
    const Outcome outcome = run_probe(bundle, {{"report"}});
    const bool refused = outcome.status != 0 && outcome.says("masked");
    if (!refused) WITHSTANDS("an environment", has(outcome.answer()["env"], "LONG=" + much));
    bundle.config["linux"]["maskedPaths"] = json::array();
    WITHSTANDS("an environment", has(report_of(bundle)["env"], "LONG=" + much));
}

TEST_CASE("CVE-2021-43784: as many mappings as the kernel takes, and more") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.add_namespace("user");
    const auto run_with = [&](size_t count, size_t first) {
        bundle.config["linux"]["uidMappings"] = many_mappings(count, first);
        bundle.config["linux"]["gidMappings"] = many_mappings(count, first);
        return run_probe(bundle, {{"read", "/proc/self/uid_map"}});
    };
    const std::string map = run_with(340, 1000).answer()["text"];
    WITHSTANDS("as many as there may be", std::ranges::count(map, '\n') == 340);
    WITHSTANDS("as many in more than a page", is_refused(run_with(340, 1'000'000), "uid_map: 340 ranges take"));
    WITHSTANDS("one more", is_refused(run_with(341, 1000), "allowed: at most 340"));
    WITHSTANDS("70 KB of them", is_refused(run_with(4000, 1000), "allowed: at most 340"));
}

TEST_CASE("CVE-2026-119101, crun CVE-2026-115520: brackets and colons in a destination are characters like others") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const std::string place : {"/data/]:", "/data/a]:b", "/mnt[/data]:/etc", "/data/\"]:{", "/data/new\nline",
                                    "/data/%s%n", "/data/ blank", "/data/\\040", "/data/-o"}) {
        Bundle bundle;
        INFO("destination ", place);
        write_text(bundle.host() / "file", "x");
        bundle.bind(bundle.host(), place);
        const Outcome outcome = run_probe(bundle, {{"read", place + "/file"}, {"report"}, {"list", "/etc"}});
        WITHSTANDS("a mount", outcome.answer(0)["text"] == "x");
        CHECK(mount_at(outcome.answer(1), place)["root"].get<std::string>().ends_with("/host"));
        CHECK(outcome.answer(2)["names"] == json::array());
    }
    // Its keys are what a checkpoint confuses; there is none here.
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::running);
    const Ended ended = verb(bundle, {"checkpoint", "--image-path", bundle.host() / "image", bundle.id()});
    WITHSTANDS("checkpoint", ended.status != 0 && !ended.err.empty() && !fs::exists(bundle.host() / "image"));
    CHECK(container.status() == "running");
}

// A name that clears the screen, colours, or turns what follows round: by ESC, by the one character that begins the
// same sequences, by a mark of direction, by bytes that are no text.
TEST_CASE("names: nothing that a terminal obeys gets through, whoever tells the name") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    // NOLINTBEGIN(misc-misleading-bidirectional, bugprone-suspicious-missing-comma): that is what they are for
    const std::string names[] = {"a\x1b[2Jb",
                                 "a\xc2\x9b"
                                 "2Jb",
                                 "a\xc2\x85"
                                 "b",
                                 "a\xe2\x80\xae"
                                 "b",
                                 "a\xe2\x81\xa6"
                                 "b",
                                 "a\x7f"
                                 "b"};
    const auto is_harmless = [](const std::string& text) {
        for (const char* bad : {"\x1b", "\xc2\x9b", "\xc2\x85", "\xe2\x80\xae", "\xe2\x81\xa6", "\x7f"}) {
            if (text.find(bad) != std::string::npos) return false;
        }
        return text.find('a') != std::string::npos;
    };
    // NOLINTEND(misc-misleading-bidirectional, bugprone-suspicious-missing-comma)
    for (const std::string& name : names) {
        Bundle bundle;
        INFO("the name ", json(name).dump(-1, ' ', true));
        const auto refuses = [&](const char* what, const RunOptions& options = {}) {
            const Outcome outcome = run(bundle, options);
            CHECK(outcome.status != 0);
            WITHSTANDS(what, is_harmless(outcome.err) && is_harmless(outcome.err + outcome.out));
        };
        const json config = bundle.config;
        bundle.config["process"]["args"] = {"/" + name};
        refuses("a program");
        refuses("a program, with --debug", {.global = {"--debug"}});
        refuses("a program, as JSON", {.global = {"--log-format", "json", "--debug"}});
        bundle.config = config;
        bundle.mount("/data/" + name, "tmpfs", "tmpfs", {"size=" + name});
        refuses("a mount");
        bundle.config = config;
        bundle.config["process"]["cwd"] = "/probe/" + name;
        refuses("a directory");
        bundle.config = config;
        write_text(bundle.rootfs() / "data" / name, "x");
        bundle.config["linux"]["devices"] = {{{"path", "/data/" + name}, {"type", "p"}}};
        refuses("a device");
        bundle.config = config;
        bundle.config["linux"]["seccomp"] = {{"defaultAction", name}};
        refuses("an action of a filter");
        using Words = std::vector<std::string>;
        for (const Words& words : {Words{"sandbox", "--" + name}, {"--log-format", name, "list"}, {"list", name}}) {
            const Ended ended = verb(bundle, words);
            CHECK(ended.status == (words.front() == "sandbox" ? 125 : 1));
            WITHSTANDS("a word of the command line", is_harmless(ended.err) && is_harmless(ended.err + ended.out));
        }
    }
}

TEST_CASE("names: nothing that a terminal obeys gets through in lists") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::string name =
        "a\xc2\x9b"
        "2J\xe2\x80\xae"
        "\nb";
    const auto is_harmless = [](const std::string& text) {
        return !text.empty() && text.find("\xc2\x9b") == std::string::npos &&
               text.find("\xe2\x80\xae") == std::string::npos;  // NOLINT(misc-misleading-bidirectional)
    };
    Bundle bundle;
    const fs::path moved = bundle.host() / name;
    bundle.config["annotations"] = {{name, name}};
    bundle.config["process"]["args"] = {"/probe", "wait-signal", name};
    bundle.write_config();
    fs::copy(bundle.path(), moved, fs::copy_options::recursive);
    const Ended created = verb(bundle, {"run", "-d", "--bundle", moved, bundle.id()});
    REQUIRE_MESSAGE(created.status == 0, created.err);
    const auto tells = [&](const std::vector<std::string>& words) {
        const Ended ended = verb(bundle, words);
        CHECK_MESSAGE(ended.status == 0, ended.err);
        WITHSTANDS(words.front(), is_harmless(ended.out));
        return ended.out;
    };
    CHECK(std::ranges::count(tells({"list"}), '\n') == 2);  // the name has no line of its own
    CHECK(json::parse(tells({"list", "--format", "json"}))[0]["bundle"] == moved.string());
    CHECK(json::parse(tells({"state", bundle.id()}))["annotations"][name] == name);
    tells({"ps", bundle.id(), "--", "-eo", "pid,args"});
    CHECK(json::parse(tells({"run", "--dry-run", "--bundle", moved, bundle.id() + "-other"}))["bundle"] ==
          moved.string());
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

}  // namespace pinfold::integration
