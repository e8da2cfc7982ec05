// Templates by name, languages by version, and what projects bring along: roots that are put together from this
// machine.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

constexpr const char* kGood =
    R"({"description": "one program", "show": ["/bin/busybo*"], "links": {"bin/sh": "busybox"}})";

// As root, whose templates are the system's, and as a normal user, who has a directory for them.
template <class Check>
void as_both_with_templates(const Check& check) {
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        fs::create_directory(bundle.host() / "config");
        write_text(bundle.host() / "good.json", kGood);
        SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        spawn.env.push_back("XDG_CONFIG_HOME=" + (bundle.host() / "config").string());
        const SystemPolicy etc(bundle, "{}");
        fs::remove(etc.path);
        check(bundle, spawn);
    }
}

Ended call(const Bundle& bundle, const std::vector<std::string>& words, const SpawnOptions& spawn) {
    return run_program(bundle.verb(words), spawn);
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

fs::path place_of(const Bundle& bundle, const SpawnOptions& spawn) {
    return spawn.uid ? bundle.host() / "config/pinfold/templates" : fs::path("/etc/pinfold/templates");
}

}  // namespace

TEST_CASE(
    "templates: those that come with pinfold are listed, shown and used by their names, whatever lies beside it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_templates([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path program = bundle.host() / "build/kind/pinfold";
        fs::create_directories(program.parent_path());
        fs::copy_file(runtime_command()[0], program);
        // What somebody else may have put where a source tree has its own.
        for (const char* name : {"busybox", "python", "other"}) {
            fs::create_directories(bundle.host() / "bundles" / name);
            write_text(
                bundle.host() / "bundles" / name / "template.json",
                R"({"description": "planted", "show": ["/etc/shadow", "/bin/busybox"], "links": {"bin/sh": "busybox"}})");
        }
        const auto run_it = [&](const std::vector<std::string>& words) {
            std::vector<std::string> line = bundle.verb(words);
            line[0] = program;
            return run_program(line, spawn);
        };
        const json list = json::parse(run_it({"template", "list", "--format", "json"}).out);
        std::string names;
        for (const json& one : list)
            names += one["name"].get<std::string>() + " " + one["from"].get<std::string>() + "\n";
        CHECK(names == "busybox pinfold\npython pinfold\n");
        CHECK_FALSE(list[0].contains("file"));
        CHECK(says(run_it({"template", "list"}).out, "busybox  pinfold  one static program"));
        const std::string shown = run_it({"template", "show", "busybox"}).out;
        CHECK_MESSAGE(says(shown, "\nshown:\n  /bin/busybox\n\nlinks:\n  /bin/ash -> busybox\n"), shown);
        CHECK(json::parse(run_it({"template", "show", "--json", "busybox"}).out)["show"][0] == "/bin/busybox");
        const Ended used = run_it({"sandbox", "--template", "busybox", "--", "sh", "-c", "echo in; ls /usr"});
        CHECK_MESSAGE(used.out == "in\n", used.err);
        CHECK(used.status == 1);
        const Ended taken = run_it({"template", "add", "python", bundle.host() / "good.json"});
        check_refused(taken, "there is a template 'python' already: it comes with pinfold");
        CHECK(says(taken.err, "hint: choose another name"));
    });
}

TEST_CASE("templates: one that is added is checked first, and found by its name from then on") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_templates([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path host = bundle.host(), file = place_of(bundle, spawn) / "box.json";
        const auto add = [&](const std::string& name, const fs::path& from, std::vector<std::string> more = {}) {
            std::vector<std::string> words = {"template", "add", name, from};
            words.insert(words.end(), more.begin(), more.end());
            return call(bundle, words, spawn);
        };
        const auto use = [&] {
            return call(bundle, {"sandbox", "--template", "box", "--", "sh", "-c", "echo in; busybox ls /"}, spawn);
        };
        CHECK(says(use().err, "there is no such template: 'box'"));
        const Ended added = add("box", host / "good.json");
        CHECK_MESSAGE(added.out == file.string() + "\n", added.err);
        CHECK(read_text(file) == kGood);
        CHECK(use().out.starts_with("in\nbin\n"));
        const std::string list = call(bundle, {"template", "list"}, spawn).out;
        CHECK_MESSAGE(says(list, std::string("\nbox      ") + (spawn.uid ? "user     one" : "system   one")), list);
        CHECK(says(call(bundle, {"template", "show", "box"}, spawn).out, "  /bin/busybo*  /bin/busybox\n"));

        check_refused(add("box", host / "good.json"), "there is a template 'box' already: " + file.string());
        write_text(host / "other.json", R"({"description": "other", "show": ["/usr/bin/env"]})");
        CHECK(add("box", host / "other.json", {"--replace"}).status == 0);
        CHECK(says(read_text(file), "other"));
        write_text(host / "bad.json", R"({"description": 1, "show": ["bin"], "extra": 1})");
        const Ended bad = add("bad", host / "bad.json");
        for (const char* words : {"description: found 1", "show[0]: found \"bin\"", "extra: is unknown"})
            check_refused(bad, words);
        write_text(host / "secret.json", R"({"description": "d", "show": ["/etc/shadow"]})");
        check_refused(add("secret", host / "secret.json"), "/etc/shadow");
        check_refused(add("missing", host / "missing.json"), "missing.json: does not exist");
        for (const char* name : {"../x", "a b", ".x", "x/y"})
            check_refused(add(name, host / "good.json"), "is no name for a template");
        CHECK(std::distance(fs::directory_iterator(file.parent_path()), {}) == 1);
        // What others can change is not used, nor does it hide the rest.
        REQUIRE(::chmod(file.c_str(), 0666) == 0);
        CHECK(says(use().err, "box.json can be changed by others than its owner"));
        CHECK(says(call(bundle, {"template", "list"}, spawn).out, "cannot be used: "));
    });
}

TEST_CASE("templates: the system's are everybody's, a user's are that user's, and root has none but the system's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_templates([](const Bundle& bundle, const SpawnOptions& spawn) {
        const SpawnOptions root = {.env = {spawn.env.back()}};
        const std::string good = bundle.host() / "good.json";
        CHECK(call(bundle, {"template", "add", "ours", good}, root).status == 0);
        CHECK(call(bundle, {"sandbox", "--template", "ours", "--", "sh", "-c", "echo in"}, spawn).out == "in\n");
        if (!spawn.uid) return;
        check_refused(call(bundle, {"template", "add", "ours", good}, spawn), "there is a template 'ours' already");
        CHECK(call(bundle, {"template", "add", "own", good}, spawn).status == 0);
        check_refused(call(bundle, {"template", "show", "own"}, root), "there is no such template: 'own'");
        SpawnOptions nowhere = spawn;
        nowhere.env = {"HOME=", "XDG_CONFIG_HOME=relative", "XDG_RUNTIME_DIR="};
        check_refused(call(bundle, {"template", "add", "own", good}, nowhere), "there is no place for templates");
    });
}

TEST_CASE("templates: who comes by sudo adds none, and is shown only what the policy lists") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    write_text(bundle.host() / "good.json", kGood);
    const SystemPolicy policy(bundle, "{}");
    const MountGuard states("none", "/run", "tmpfs", 0);  // who comes by sudo has no other
    const std::string good = bundle.host() / "good.json";
    const SpawnOptions bound = {.env = {"SUDO_UID=1234"}};
    const std::vector<std::string> line = {
        runtime_command()[0], "sandbox", "--template", "ours", "--", "sh", "-c", "echo in"};
    REQUIRE(call(bundle, {"template", "add", "ours", good}, {}).status == 0);
    const auto as_bound = [&](std::vector<std::string> words) {
        words.insert(words.begin(), runtime_command()[0]);
        return run_program(words, bound);
    };
    check_refused(as_bound({"template", "add", "theirs", good}), "verbs: 'template add' is not allowed");
    CHECK(says(as_bound({"template", "list"}).out, "ours"));
    const std::string shown = as_bound({"template", "show", "ours"}).out;
    CHECK(says(shown, "/bin/busybo*"));
    CHECK(!says(shown, "/bin/busybox"));  // what it stands for is root's to see
    check_refused(as_bound({"template", "show", good}), "policy: ");
    CHECK(run_program(line, bound).status == 125);
    write_text(policy.path, R"({"allowed_read_paths": ["/usr/bin"]})");
    const Ended used = run_program(line, bound);
    CHECK_MESSAGE(used.out == "in\n", used.err);
}

TEST_CASE("languages: those that a root has are listed with their versions") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_templates([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Ended listed = run_job(bundle, {{"--lang", "list"}, {}, spawn});
        CHECK_MESSAGE(listed.status == 0, listed.err);
        const std::string version =
            run_program({"/usr/bin/python3", "-c", "import platform as p; print(p.python_version())"}).out;
        CHECK_MESSAGE(says(listed.out, "\npython    python3  " + version), listed.out);
        CHECK(says(listed.out, "\nperl      perl     5."));
        CHECK(says(listed.out, "\nsh        sh       -\n"));
        for (const char* program : {"lua", "php", "ruby", "tclsh"})
            CHECK(says(listed.out, std::string(" ") + program + " ") == fs::exists(std::string("/usr/bin/") + program));
        const Ended part = run_job(bundle, {{"--template", bundle.host() / "good.json", "--lang", "list"}, {}, spawn});
        CHECK_MESSAGE(part.out == "LANGUAGE  PROGRAM  VERSION\nsh        sh       -\n", part.out << part.err);
        check_refused(run_job(bundle, {{"--lang", "list", "script.py"}, {}, spawn}), "--lang list takes no script",
                      125);
        check_refused(run_job(bundle, {{"--lang", "list", "--detach"}, {}, spawn}), "--lang list prints a list", 125);
        check_refused(run_job(bundle, {{"--lang", "list", "--rootfs", "/missing"}, {}, spawn}), "/missing", 125);
    });
}

// The examples of pinfold-sandbox(1).
TEST_CASE("languages: a project's own packages are shown to a job, read-only") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/node")) SKIP_TEST("needs nodejs");
    as_both_with_templates([](const Bundle& bundle, SpawnOptions spawn) {
        const fs::path project = bundle.host() / "project";
        fs::create_directories(project / "tests");
        fs::create_directories(project / "test");
        fs::create_directories(project / "node_modules/sheep");
        const Ended made = run_program({"/usr/bin/python3", "-m", "venv", "--without-pip", project / ".venv"});
        REQUIRE_MESSAGE(made.status == 0, made.err);
        fs::path packages;
        for (const fs::directory_entry& one : fs::directory_iterator(project / ".venv/lib"))
            packages = one.path() / "site-packages";
        write_text(packages / "sheep.py", "legs = 4\n");
        write_text(project / "tests/test_sheep.py",
                   "import sheep, sys, unittest\n"
                   "class Sheep(unittest.TestCase):\n"
                   "    def test_legs(self):\n"
                   "        self.assertEqual((sheep.legs, sys.prefix), (4, '/venv'))\n"
                   "        self.assertRaises(OSError, open, sheep.__file__, 'a')\n");
        write_text(project / "node_modules/sheep/index.js", "exports.legs = 4;\n");
        write_text(project / "test/sheep.test.js",
                   "const { test } = require('node:test'), assert = require('node:assert'), fs = require('node:fs');\n"
                   "test('legs', () => {\n"
                   "  assert.strictEqual(require('sheep').legs, 4);\n"
                   "  assert.throws(() => fs.appendFileSync(require.resolve('sheep'), 'x'), { code: 'EROFS' });\n"
                   "});\n");
        if (spawn.uid) REQUIRE(run_program({"/bin/chown", "-hR", std::to_string(*spawn.uid), project}).status == 0);
        spawn.directory = project;
        const Ended python = run_job(bundle, {{"--ro-bind", ".venv:/venv", "--copy-in", "tests:tests"},
                                              {"/venv/bin/python", "-m", "unittest", "discover", "tests"},
                                              spawn});
        CHECK_MESSAGE(python.status == 0, python.err);
        CHECK(says(python.err, "Ran 1 test"));
        const Ended node =
            run_job(bundle, {{"--ro-bind", "node_modules:/workspace/node_modules", "--copy-in", "test:test"},
                             {"node", "--test", "test"},
                             spawn});
        CHECK_MESSAGE(node.status == 0, node.out);
        CHECK(says(node.out, "pass 1"));
        CHECK(read_text(packages / "sheep.py") == "legs = 4\n");
    });
}
