// The command line: which words are options of pinfold, which are another program's, and what main is told of them.
#include "cli/parse_arguments.hpp"

#include <algorithm>

#include "recorded.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::Parsed;
using Words = std::vector<std::string>;

namespace {

// "--bundle": the path that main takes through the gate, and what for.
struct NamedPath {
    PathUse use;
    std::string* value;
};

std::optional<NamedPath> find_path(const Parsed& parsed, const std::string& name) {
    const std::vector<Option>& options = parsed.line.verb.options;
    const auto found = std::ranges::find(options, name, &Option::name);
    if (found == options.end() || !found->path) return std::nullopt;
    return NamedPath{*found->path, std::get<std::string*>(found->value)};
}

}  // namespace

TEST_CASE("arguments: run's options, in either form, and what they are without") {
    Parsed bare({"run", "web"});
    const RunOptions plain = bare.options<RunOptions>();
    CHECK(plain.id == "web");
    CHECK(plain.bundle == ".");
    CHECK(plain.config.empty());
    CHECK_FALSE(plain.child.detach);
    CHECK_FALSE(plain.keep);
    CHECK_FALSE(plain.strict);
    CHECK(bare.line.global.root_is_default);
    CHECK(bare.line.global.cgroup_manager == CgroupManager::cgroupfs);
    CHECK_FALSE(bare.line.global.rootless);

    Parsed full({"--root",
                 "/r",
                 "--debug",
                 "--log-format=json",
                 "--systemd-cgroup",
                 "--rootless",
                 "false",
                 "run",
                 "-d",
                 "--bundle=/b",
                 "-f",
                 "/c",
                 "--pid-file",
                 "/p",
                 "--preserve-fds",
                 "2",
                 "--keep",
                 "--no-pivot",
                 "--no-new-keyring",
                 "--strict",
                 "web"});
    const RunOptions all = full.options<RunOptions>();
    CHECK(all.bundle == "/b");
    CHECK(all.config == "/c");
    CHECK(all.child.detach);
    CHECK(all.child.pid_file == "/p");
    CHECK(all.child.preserve_fds == 2);
    CHECK(all.keep);
    CHECK(all.no_pivot);
    CHECK(all.no_new_keyring);
    CHECK(all.strict);
    const GlobalOptions& global = full.line.global;
    CHECK(global.root == "/r");
    CHECK_FALSE(global.root_is_default);
    CHECK(global.log.debug);
    CHECK(global.log.json);
    CHECK(global.cgroup_manager == CgroupManager::systemd);
    CHECK(global.rootless == false);
}

TEST_CASE("arguments: from the first word that is no option on, they are another program's") {
    struct Row {
        Words words;
        Words args;
    };
    const Row rows[] = {
        {{"exec", "-t", "web", "ls", "-t", "--env", "x"}, {"ls", "-t", "--env", "x"}},
        {{"exec", "-t", "web", "--", "-x", "y"}, {"-x", "y"}},
        {{"exec", "-t", "web", "--", "ls", "--", "-l"}, {"ls", "--", "-l"}},
        {{"exec", "-t", "web", "ls", "--", "-l"}, {"ls", "--", "-l"}},
        {{"exec", "-t", "web", "run", "web"}, {"run", "web"}},
        {{"exec", "-t", "web", "ls", "--help"}, {"ls", "--help"}},
        {{"exec", "-t", "web", "-", "x"}, {"-", "x"}},
        {{"exec", "-t", "web", "ls", ""}, {"ls", ""}},
        {{"exec", "-t", "web"}, {}},
    };
    for (const Row& row : rows) {
        Parsed parsed(row.words);
        CAPTURE(row.words.back());
        const ExecOptions options = parsed.options<ExecOptions>();
        CHECK(options.id == "web");
        CHECK(options.terminal);
        CHECK(options.args == row.args);
    }
    Parsed sandbox({"sandbox", "--timeout", "1s", "--", "sandbox", "--timeout", "2s"});
    const SandboxOptions job = sandbox.options<SandboxOptions>();
    CHECK(job.limits.timeout == "1s");
    CHECK(job.args == Words{"sandbox", "--timeout", "2s"});
}

TEST_CASE("arguments: a mistyped option is no program's name") {
    struct Row {
        Words words;
        std::string told;
        std::string hint;
    };
    const Row rows[] = {
        {{"exec", "web", "--ttz"}, "unknown option '--ttz'", "did you mean --tty?"},
        {{"exec", "--ttz", "web", "true"}, "unknown option '--ttz'", "did you mean --tty?"},
        {{"sandbox", "--memroy=1g", "true"}, "unknown option '--memroy'", "did you mean --memory?"},
        {{"spec", "--cpuz", "1"}, "unknown option '--cpuz'", "did you mean --cpus?"},
        {{"list", "-x"}, "unknown option '-x'", "pinfold list --help lists what there is"},
        {{"sandbox", "--debug", "--", "true"}, "unknown option '--debug'", "put it before the verb"},
        {{"--timeout", "5s", "sandbox", "true"}, "unknown option '--timeout'", "put it behind the verb"},
    };
    for (const Row& row : rows) {
        const Error error = Parsed(row.words).mistake();
        CAPTURE(row.words[1]);
        CHECK(error.message == row.told);
        CHECK_MESSAGE(error.hint.find(row.hint) != std::string::npos, error.hint);
    }
    // ps(1) is called with options alone.
    CHECK(Parsed({"ps", "web", "-o", "pid,args"}).line.title == "ps 'web'");
}

TEST_CASE("arguments: of an option that is given twice the last counts, but lists are lists") {
    Parsed parsed({"exec", "--cwd", "/a", "-e", "A=1", "--cwd", "/b", "-e", "B=2 3", "-c", "CAP_KILL", "-g", "5", "-g",
                   "6", "web", "sh"});
    const ExecOptions options = parsed.options<ExecOptions>();
    CHECK(options.cwd == "/b");
    CHECK(options.env == Words{"A=1", "B=2 3"});
    CHECK(options.capabilities == Words{"CAP_KILL"});
    CHECK(options.additional_gids == std::vector<uint32_t>{5, 6});
    CHECK(options.id == "web");
    CHECK(options.args == Words{"sh"});
}

TEST_CASE("arguments: what cannot be meant is refused with the option's name, before anything is done") {
    struct Row {
        Words words;
        std::string named;
    };
    const Row rows[] = {
        {{"run"}, "ID"},
        {{"run", "--preserve-fds", "many", "web"}, "--preserve-fds"},
        {{"run", "--preserve-fds", "-1", "web"}, "--preserve-fds"},
        {{"run", "web", "extra"}, "extra"},
        {{"exec", "-g", "4294967296", "web", "sh"}, "--additional-gids"},
        {{"sandbox", "--network", "bridge", "true"}, "--network"},
        {{"sandbox", "--cpus", "all", "true"}, "--cpus"},
        {{"update", "--blkio-weight", "70000", "web"}, "--blkio-weight"},
        {{"list", "--format", "yaml"}, "--format"},
        {{"--log-format", "xml", "list"}, "--log-format"},
        {{"--cgroup-manager", "openrc", "list"}, "--cgroup-manager"},
        {{"--rootless", "maybe", "list"}, "--rootless"},
        {{"seccomp"}, "a verb is required"},
        {{"frobnicate"}, "unknown verb 'frobnicate'"},
        {{"sandbx", "--", "run"}, "unknown verb 'sandbx'"},
        {{"seccomp", "shw"}, "unknown verb 'shw'"},
        {{}, "a verb is required"},
        {{"list", "--bundle", "x"}, "--bundle"},
        {{"sandbox", "--network", "--", "true"}, "--network needs a value"},
        {{"sandbox", "--memory", "--", "true"}, "--memory needs a value"},
        {{"sandbox", "-e", "--", "true"}, "--env needs a value"},
        {{"exec", "--", "web", "true"}, "ID is expected before --"},
        {{"exec", "--timeout", "", "web", "true"}, "--timeout needs a value"},
        {{"prune", "--older-than", ""}, "--older-than needs a value"},
        {{"--policy", "", "list"}, "--policy needs a value"},
        {{"sandbox", "--output-limit", "", "--", "true"}, "--output-limit needs a value"},
        {{"state", ""}, "ID needs a value"},
    };
    for (const Row& row : rows) {
        const Parsed parsed(row.words);
        CAPTURE(row.named);
        const std::string told = parsed.mistake().message;
        CHECK_MESSAGE(told.find(row.named) != std::string::npos, told);
        CHECK(parsed.out.empty());
        CHECK(parsed.err.empty());
    }
}

TEST_CASE("arguments: what runc takes without a value is taken") {
    for (const Words& words : {Words{"create", "--pid-file", "", "--console-socket", "", "web"},
                               {"--root", "", "--log", "", "state", "web"},
                               {"exec", "--user", "", "--cwd", "", "--apparmor", "", "web", "ls"}})
        CHECK(Parsed(words).line.target == "web");
}

TEST_CASE("arguments: a verb that there is not is answered with the nearest") {
    struct Row {
        std::string word;
        std::string hint;
    };
    const Row rows[] = {{"sandbx", "did you mean sandbox?"},
                        {"exce", "did you mean exec?"},
                        {"help", "did you mean --help?"},
                        {"version", "did you mean --version?"},
                        {"ls", "pinfold --help lists what there is"},
                        {"checkpoint", "pinfold --help lists what there is"}};
    for (const Row& row : rows) {
        const Error error = Parsed({row.word, "--", "true"}).mistake();
        CHECK(error.message == "unknown verb '" + row.word + "'");
        CHECK(error.hint == row.hint);
    }
}

TEST_CASE("arguments: of words that make no sense, main is told where a failure is to go, and with which exit code") {
    struct Row {
        Words words;
        int failure;
        std::string result;
    };
    const Row rows[] = {
        {{"sandbox", "--result", "r", "--memroy", "1g", "--", "true"}, 125, "r"},
        {{"sandbox", "--memroy", "1g", "--result", "r", "--", "true"}, 125, "r"},
        {{"sandbox", "--memroy=1g", "--result=r", "--", "true"}, 125, "r"},
        {{"sandbox", "--debug", "--result", "r", "true"}, 125, "r"},
        {{"sandbox", "--result", "r", "--network", "bridge", "true"}, 125, "r"},
        {{"sandbox", "--result", "r", "--network", "--", "true"}, 125, "r"},
        {{"exec", "--timout", "5s", "--result", "r", "web", "true"}, 255, "r"},
        {{"exec", "--result", "r"}, 255, "r"},
        // What may be the program's own is left alone.
        {{"sandbox", "--debug", "prog", "--result", "r"}, 125, ""},
        {{"sandbox", "--frobnicate", "prog", "--result", "r"}, 125, ""},
        {{"sandbox", "--memroy", "1g", "prog", "--result", "r"}, 125, ""},
        {{"sandbox", "--memroy", "1g", "--", "--result", "r"}, 125, ""},
        {{"sandbox", "--frobnicate", "--", "--result", "r"}, 125, ""},
        {{"seccomp", "learn", "--frobnicate", "true"}, 125, ""},
        {{"list", "--result", "r"}, 1, ""},
        {{"sandbx", "--result", "r"}, 1, ""},
    };
    for (const Row& row : rows) {
        const Parsed parsed(row.words);
        CAPTURE(row.words[1]);
        CHECK(parsed.mistake().message != "nothing is wrong");
        CHECK(parsed.line.failure == row.failure);
        REQUIRE(parsed.line.verb.result);
        CHECK(*parsed.line.verb.result == row.result);
    }
    const Parsed logged({"--log", "/l", "--log-format", "json", "--policy", "/p", "exec", "--tyt", "web", "true"});
    CHECK(logged.line.global.log.file == "/l");
    CHECK(logged.line.global.log.json);
    CHECK(logged.line.global.policy == "/p");
    REQUIRE(find_path(logged, "--log"));
    REQUIRE(find_path(Parsed({"exec", "--tyt", "--result", "r"}), "--result"));
}

TEST_CASE("arguments: words of the caller's cannot write to a terminal what they like") {
    const Parsed parsed({"\x1b[2J"});  // what it has of other words is the logger's to make printable
    CHECK(parsed.mistake().message.find('\x1b') == std::string::npos);
}

TEST_CASE("arguments: help and version are answers, not failures") {
    for (const Words& words :
         {Words{"--help"}, Words{"run", "--help"}, Words{"--version"}, Words{"seccomp", "show", "-h"}}) {
        const Parsed parsed(words);
        CAPTURE(words[0]);
        CHECK(parsed.exit_code == 0);
        CHECK_FALSE(parsed.out.empty());
        CHECK(parsed.err.empty());
    }
    const std::string help = Parsed({"--help"}).out;
    for (const std::string verb :
         {"create", "start", "run", "exec", "kill", "delete", "state", "list", "sandbox", "prune"}) {
        CAPTURE(verb);
        CHECK(help.find(verb) != std::string::npos);
    }
}

TEST_CASE("arguments: a failure has the exit code that cannot be mistaken for the program's own") {
    CHECK(Parsed({"run", "web"}).line.failure == 1);
    CHECK(Parsed({"exec", "web", "true"}).line.failure == 255);
    CHECK(Parsed({"sandbox", "true"}).line.failure == 125);
    CHECK(Parsed({"seccomp", "learn", "true"}).line.failure == 125);
    CHECK(Parsed({"delete", "web"}).line.failure == 1);
}

TEST_CASE("arguments: main is told the verb, the container, and the beginning of an error") {
    const Parsed kill({"kill", "web", "9"});
    CHECK(kill.line.words == "kill");
    CHECK(kill.line.target == "web");
    CHECK(kill.line.title == "kill 'web'");
    const Parsed show({"seccomp", "show", "default"});
    CHECK(show.line.words == "seccomp show");
    CHECK(show.line.target.empty());
    CHECK(show.line.title == "seccomp show");
    const Parsed copy({"cp", "web:/etc/hosts", "hosts"});
    CHECK(copy.line.target == "web");
}

TEST_CASE("arguments: every path of the host's goes through the gate, with what is done with it") {
    const Parsed run(
        {"--log", "/l", "--audit", "/a", "run", "-b", "/b", "--pid-file", "/p", "--console-socket", "/s", "web"});
    struct Row {
        std::string option;
        PathUse use;
        std::string value;
    };
    const Row rows[] = {{"--log", PathUse::append, "/l"},     {"--audit", PathUse::entry, "/a"},
                        {"--bundle", PathUse::read, "/b"},    {"--config", PathUse::read, ""},
                        {"--pid-file", PathUse::entry, "/p"}, {"--console-socket", PathUse::socket, "/s"}};
    for (const Row& row : rows) {
        CAPTURE(row.option);
        const std::optional<NamedPath> path = find_path(run, row.option);
        REQUIRE(path);
        CHECK(path->use == row.use);
        CHECK(*path->value == row.value);
    }
    REQUIRE(find_path(run, "--root"));
    CHECK(find_path(run, "--root")->use == PathUse::state_root);

    // What is on the container's side is none of the host's.
    const Parsed out({"cp", "web:/etc/hosts", "./a:b"});
    CHECK_FALSE(find_path(out, "SOURCE"));
    REQUIRE(find_path(out, "TARGET"));
    CHECK(find_path(out, "TARGET")->use == PathUse::entry);
    CHECK(*find_path(out, "TARGET")->value == "./a:b");
    const Parsed in({"cp", "/tmp/a:b", "web:/x"});
    REQUIRE(find_path(in, "SOURCE"));
    CHECK(find_path(in, "SOURCE")->use == PathUse::source);
    CHECK_FALSE(find_path(in, "TARGET"));
}

TEST_CASE("arguments: what the gate changes in a path is what the verb sees") {
    Parsed parsed({"run", "-b", "/b", "web"});
    *find_path(parsed, "--bundle")->value = "/proc/self/fd/3";
    CHECK(parsed.options<RunOptions>().bundle == "/proc/self/fd/3");
}
