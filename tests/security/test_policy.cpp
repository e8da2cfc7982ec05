// A policy that binds: every verb and every option that names something of the host's, tried by a caller who has root's
// rights from sudo(8) and wants more than the policy gives.
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>

#include "attacks.hpp"
#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

using Words = std::vector<std::string>;

std::string quoted(const fs::path& path) { return json(path.string()).dump(); }

const std::string& program() { return runtime_command()[0]; }

Words line_of(const Words& words) {
    Words line = runtime_command();
    line.insert(line.end(), words.begin(), words.end());
    return line;
}

// As sudo(8) starts it.
SpawnOptions by_sudo() { return {.env = {"SUDO_UID=65000", "SUDO_COMMAND=" + program() + " sandbox"}}; }

Ended call(const Words& words, const SpawnOptions& spawn = by_sudo()) { return run_program(line_of(words), spawn); }

// A machine with a policy, and with nothing in its default state directory.
struct Machine {
    explicit Machine(const std::string& policy) : system(bundle, policy), run("tmpfs", "/run", "tmpfs", 0) {}

    Bundle bundle;
    SystemPolicy system;
    MountGuard run;
};

// Forbidden by the policy, and open to everyone.
class Forbidden {
public:
    Forbidden() {
        fs::create_directories(path());
        write_text(secret(), kText);
    }
    ~Forbidden() { fs::remove_all(path()); }
    Forbidden(const Forbidden&) = delete;
    Forbidden& operator=(const Forbidden&) = delete;

    static constexpr const char* kText = "the host's own";
    static fs::path path() { return playground() / "forbidden"; }
    static fs::path secret() { return path() / "secret"; }
    static bool untouched() {
        return read_text(secret()) == kText && std::distance(fs::directory_iterator(path()), {}) == 1;
    }
    static std::string policy(const std::string& more = "") {
        return "{\"allowed_read_paths\": [\"/\"], \"allowed_write_paths\": [\"/\"], \"forbidden_paths\": [" +
               quoted(path()) + "]" + (more.empty() ? "" : ", " + more) + "}";
    }
};

bool refused(const Ended& ended, const std::string& words = "policy: ") {
    const bool told =
        ended.out.find(Forbidden::kText) != std::string::npos || ended.err.find(Forbidden::kText) != std::string::npos;
    INFO(ended.err);
    return ended.status != 0 && ended.err.find(words) != std::string::npos && !told && Forbidden::untouched();
}

struct Option {
    Words verb;
    std::string name;   // empty: a positional argument
    std::string value;  // as the help calls it
};

std::string help_of(Words verb) {
    verb.emplace_back("--help");
    return run_program(line_of(verb)).out;
}

std::vector<std::string> matches_of(const std::string& text, const std::regex& pattern) {
    std::vector<std::string> found;
    for (std::sregex_iterator one(text.begin(), text.end(), pattern), end; one != end; ++one)
        found.push_back((*one)[1]);
    return found;
}

std::vector<Words> all_verbs() {
    std::vector<Words> verbs;
    const std::regex line("\n  ([a-z]+) +[a-z]");
    for (const std::string& name : matches_of(help_of({}), line)) {
        const std::string help = help_of({name});
        if (help.find("Subcommands:") == std::string::npos) verbs.push_back({name});
        else
            for (const std::string& below : matches_of(help, line)) verbs.push_back({name, below});
    }
    return verbs;
}

// From the parser's own table, which the help is made of.
std::vector<Option> options_of(const Words& verb) {
    std::vector<Option> options;
    std::istringstream lines(help_of(verb));
    const std::regex option(R"(^  (?:-.,)?(--[a-z-]+)(?:,!--[a-z-]+)? ([A-Z]\S*)(?: .*)?$)");
    const std::regex positional(R"(^  ([A-Z]+) TEXT.*$)");
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
        if (std::regex_match(line, found, option)) {
            const std::string value = found[2];
            options.push_back({verb, found[1], value == "NAME=VALUE" ? value : value.substr(0, value.find('='))});
        } else if (std::regex_match(line, found, positional)) {
            options.push_back({verb, "", found[1]});
        }
    }
    return options;
}

std::string value_for(const Option& option) {
    const std::string vault = Forbidden::path(), secret = Forbidden::secret(), entry = Forbidden::path() / "new";
    if (option.name == "--cwd" || option.name == "--apparmor") return "";  // in the container; not a file
    const std::string& kind = option.value;
    if (option.name == "--copy-in") return secret + ":/tmp/x";
    if (option.name == "--secret") return "x=" + secret;
    if (option.name == "--copy-out") return "/etc/passwd:" + entry;
    if (kind == "SRC[:DST]") return vault + ":/x";
    if (kind == "DIR" || kind == "DIR|disk") return vault;
    if (kind == "TARGET" || option.name == "--pid-file" || option.name == "--result") return entry;
    if (kind == "FILE" || kind == "NAME" || kind == "PROFILE" || kind == "OTHER" || kind == "RUNTIME" ||
        kind == "SOCKET" || kind == "SOURCE") {
        return secret;
    }
    static const Words kOthers = {"TIME",     "SIZE",  "N",      "ID",         "LIMIT",     "USER",
                                  "GID",      "CAP",   "LABEL",  "PATH",       "LIST",      "PORTS",
                                  "LANGUAGE", "EVENT", "SIGNAL", "NAME=VALUE", "UID[:GID]", "TEMPLATE"};
    CAPTURE(option.name);
    CAPTURE(kind);
    // A new kind of value: does it name something of the host's?
    CHECK(std::find(kOthers.begin(), kOthers.end(), kind) != kOthers.end());
    return "";
}

// The verb with this option and whatever else it cannot be without.
Words with(const Option& option, const std::string& value, const std::vector<Option>& all) {
    Words words = option.verb;
    if (!option.name.empty()) words.insert(words.end(), {option.name, value});
    if (option.name == "--keep-files") words.emplace_back("--detach");
    for (const Option& other : all) {
        if (!other.name.empty()) continue;
        const bool is_it = option.name.empty() && other.value == option.value;
        words.push_back(is_it                                                ? value
                        : other.value == "SOURCE" || other.value == "TARGET" ? "box:/tmp/x"
                        : other.value == "SIGNAL"                            ? "TERM"
                        : other.value == "FILE"                              ? "/dev/null"
                        : other.value == "ID"                                ? "box"
                                                                             : "default");
    }
    const std::string& last = option.verb.back();
    if (last == "sandbox" || last == "learn" || last == "exec") words.emplace_back("true");
    return words;
}

}  // namespace

TEST_CASE("policy: every option that names a path, of every verb, against a forbidden directory") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    std::string names;
    for (const Words& verb : all_verbs()) {
        names += (names.empty() ? "\"" : ", \"") + verb[0] + (verb.size() > 1 ? " " + verb[1] : "") + "\"";
    }
    const Machine machine(Forbidden::policy("\"verbs\": [" + names + "]"));
    const auto words_of = [](const Option& option) {
        return option.name == "--root"     ? "only the default state directory"
               : option.value == "SOCKET"  ? "policy: a socket"
               : option.value == "RUNTIME" ? "policy: runtimes"
                                           : "policy: forbidden_paths";
    };
    int tried = 0;
    for (const Option& option : options_of({})) {
        const std::string value = value_for(option);
        if (value.empty()) continue;
        WITHSTANDS(option.name, refused(call({option.name, value, "sandbox", "--", "true"}), words_of(option)));
        WITHSTANDS(option.name, refused(call({option.name, value, "state", "box"}), words_of(option)));
        ++tried;
    }
    for (const Words& verb : all_verbs()) {
        const std::vector<Option> options = options_of(verb);
        for (const Option& option : options) {
            const std::string value = value_for(option);
            if (value.empty()) continue;
            const Words line = with(option, value, options);
            WITHSTANDS(verb[0] + " " + option.name + " " + option.value, refused(call(line), words_of(option)));
            ++tried;
        }
    }
    // A script is named by an argument.
    WITHSTANDS("--lang", refused(call({"sandbox", "--lang", "bash", Forbidden::secret()}), "policy: forbidden_paths"));
    CHECK(tried > 45);
}

TEST_CASE("policy: what it allows works, by whatever name") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine(Forbidden::policy("\"limits\": {\"memory_mb\": 1024}"));
    const fs::path host = machine.bundle.host();
    write_text(host / "data", "data\n");
    const Ended job = call({"--log", host / "log", "--audit", host / "audit", "sandbox", "--result", host / "result",
                            "--copy-in", (host / "data").string() + ":/tmp/data", "--copy-out",
                            "/tmp/data:" + (host / "back").string(), "--", "cat", "/tmp/data"});
    CHECK_MESSAGE(job.out == "data\n", job.err);
    CHECK(json::parse(read_text(host / "result"))["status"] == "exited");
    CHECK(read_text(host / "back") == "data\n");
    CHECK(read_text(host / "audit").find("\"end\"") != std::string::npos);
    CHECK(fs::exists(host / "log"));
    REQUIRE(call({"sandbox", "-d", "--name", "box"}).status == 0);
    CHECK(call({"cp", host / "data", "box:/tmp/copy"}).status == 0);
    CHECK(call({"exec", "box", "cat", "/tmp/copy"}).out == "data\n");
    fs::create_directory(host / "own");
    CHECK(call({"cp", "box:/tmp/copy", host / "own"}).status == 0);
    CHECK(read_text(host / "own/copy") == "data\n");
    CHECK(call({"list", "-q"}).out == "box\n");
    CHECK(call({"delete", "--force", "box"}).status == 0);
}

TEST_CASE("policy: who comes by sudo may name what is listed, and where there is no list, nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine(R"({"limits": {"timeout_seconds": 60}})");
    const std::string secret = Forbidden::secret(), entry = Forbidden::path() / "new";
    REQUIRE(call({"sandbox", "-d", "--name", "box"}).status == 0);
    const std::vector<Words> reads = {{"sandbox", "--copy-in", secret + ":/tmp/x", "--", "cat", "/tmp/x"},
                                      {"sandbox", "--ro-bind", secret + ":/tmp/x", "--", "cat", "/tmp/x"},
                                      {"sandbox", "--lang", "sh", secret},
                                      {"sandbox", "--seccomp", secret, "--", "true"},
                                      {"--policy", secret, "list"},
                                      {"cp", secret, "box:/tmp/x"}};
    const std::vector<Words> writes = {
        {"sandbox", "--copy-out", "/etc/passwd:" + entry, "--", "true"},
        {"sandbox", "--bind", Forbidden::path().string() + ":/x", "--", "touch", "/x/new"},
        {"sandbox", "--result", entry, "--", "true"},
        {"--log", entry, "list"},
        {"--audit", entry, "exec", "box", "true"},
        {"cp", "box:/etc/passwd", entry}};
    for (const Words& words : reads) {
        WITHSTANDS(words[0] + " " + words[1],
                   refused(call(words), "allowed_read_paths: " + secret + " is not in an empty list"));
    }
    for (const Words& words : writes) {
        WITHSTANDS(words[0] + " " + words[1],
                   refused(call(words), "is not in an empty list (/etc/pinfold/policy.json)"));
    }
    // What needs no file of the host's works, and root is not asked.
    CHECK(call({"cp", "box:/etc/passwd", "-"}).status == 0);
    CHECK(call({"cp", secret, "box:/tmp/x"}, {}).status == 0);
    // One list says nothing of what the other is for; but what may be written may be read.
    write_text(machine.system.path, "{\"allowed_read_paths\": [" + quoted(Forbidden::path()) + "]}");
    CHECK(call({"cp", secret, "box:/tmp/x"}).status == 0);
    for (const Words& words : writes) WITHSTANDS("read " + words[0], refused(call(words), "allowed_write_paths: "));
    write_text(machine.system.path, "{\"allowed_write_paths\": [" + quoted(machine.bundle.host()) + "]}");
    for (const Words& words : reads) WITHSTANDS("write " + words[0], refused(call(words), "allowed_read_paths: "));
    CHECK(call({"cp", "box:/etc/passwd", machine.bundle.host() / "copy"}).status == 0);
    CHECK(call({"cp", machine.bundle.host() / "copy", "box:/tmp/x"}).status == 0);
    // A policy of the caller's own names a file, too.
    write_text(machine.bundle.host() / "own.json", "{\"audit\": " + quoted(Forbidden::path() / "new") + "}");
    const Ended own = call({"--policy", machine.bundle.host() / "own.json", "exec", "box", "true"});
    WITHSTANDS("audit of --policy", refused(own, "--policy: audit: "));
    CHECK(call({"delete", "--force", "box"}).status == 0);
}

TEST_CASE("policy: who comes by sudo is not told what there is where nothing is listed, nor where a link leads") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;  // for refused()
    const Machine machine("{}");
    const fs::path own = machine.bundle.host() / "own", hidden = machine.bundle.host() / "hidden";
    const fs::path secret = hidden / "secret";
    for (const fs::path& directory : {own, hidden}) fs::create_directory(directory);
    write_text(secret, "text\n");
    write_text(machine.system.path,
               "{\"allowed_read_paths\": [" + quoted(own) + "], \"allowed_write_paths\": [" + quoted(own) + "]}");
    fs::create_symlink("/etc/hostname", hidden / "link");
    fs::create_symlink(secret, own / "to-secret");
    fs::create_symlink(hidden / "none", own / "to-none");
    fs::create_symlink(hidden, own / "to-directory");
    const std::vector<fs::path> names = {secret,
                                         hidden / "none",
                                         hidden / "link",
                                         secret / "x",
                                         hidden / "none/x",
                                         own / "to-secret",
                                         own / "to-none",
                                         own / "to-none/x",
                                         own / "to-directory/none",
                                         own / "to-directory/none/x"};
    REQUIRE(call({"sandbox", "-d", "--name", "box"}).status == 0);
    for (const fs::path& name : names) {
        for (const Words& words : {Words{"sandbox", "--env-file", name, "--", "true"},
                                   {"sandbox", "--ro-bind", name.string() + ":/tmp/x", "--", "true"},
                                   {"sandbox", "--lang", "sh", name},
                                   {"sandbox", "--secret", "s=" + name.string(), "--", "true"},
                                   {"cp", name, "box:/tmp/x"}}) {
            if (words[0] == "cp" && fs::is_symlink(name)) continue;  // a link is not copied, whatever it leads to
            const Ended told = call(words);
            WITHSTANDS(words[1] + " " + name.string(),
                       refused(told, "allowed_read_paths: " + name.string() + " is not in " + own.string()));
            WITHSTANDS(words[1] + " errno", told.err.find("(E") == std::string::npos);
        }
    }
    for (const fs::path& name : {hidden / "none/x", secret / "x", own / "to-none/x"}) {
        const Ended told = call({"cp", "box:/etc/passwd", name});
        WITHSTANDS("cp to " + name.string(), refused(told, "allowed_write_paths: " + name.string() + " is not in "));
    }
    // Of what is listed all is told.
    CHECK(call({"cp", own / "none", "box:/tmp/x"}).err.find("(ENOENT)") != std::string::npos);
    CHECK(call({"delete", "--force", "box"}).status == 0);
}

TEST_CASE("policy: who comes by sudo is told of the processes of a sandbox, and of no others") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;  // for refused()
    const Machine machine("{}");
    SpawnOptions secretive;
    secretive.env = {"SECRET_TOKEN=hunter2"};
    const Process roots({"sleep", "1000"}, secretive);
    const std::string pid = std::to_string(roots.pid());
    REQUIRE(call({"sandbox", "-d", "--name", "box", "--", "sleep", "1000"}).status == 0);
    for (const Words& words :
         {Words{"eww", "-p", pid, "-o", "comm=PID,args"}, {"eww", "-p", pid}, {"-o", "etimes=PID,args"}}) {
        Words line = {"ps", "box"};
        line.insert(line.end(), words.begin(), words.end());
        const Ended told = call(line);
        WITHSTANDS("ps " + words[0], refused(told, "policy: arguments of ps(1)"));
        WITHSTANDS("ps " + words[0] + ": what it says", (told.out + told.err).find("hunter2") == std::string::npos);
    }
    // Root may ask as it likes, and is not shown a line either that only looks like one of the container's.
    const Ended wrong = call({"ps", "box", "eww", "-p", pid, "-o", "comm=PID,args"}, {});
    WITHSTANDS("a line that is none", wrong.err.find("hunter2") == std::string::npos);
    CHECK(call({"ps", "box"}).out.find("sleep 1000") != std::string::npos);
    CHECK(call({"delete", "--force", "box"}).status == 0);
}

TEST_CASE("policy: the shipped one lets those who come by sudo work") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Machine machine(read_text(fs::path(PINFOLD_SUDOERS).parent_path() / "policy.json"));
    const MountGuard srv("tmpfs", "/srv", "tmpfs", 0), log("tmpfs", "/var/log", "tmpfs", 0);
    for (const char* directory : {"/srv/data/private", "/srv/results", "/var/log/pinfold"}) {
        fs::create_directories(directory);
    }
    write_text("/srv/data/in", "data\n");
    write_text("/srv/data/private/key", "key\n");
    const Ended job = call({"sandbox", "--copy-in", "/srv/data/in:/workspace/in", "--copy-out",
                            "/workspace/in:/srv/results/out", "--result", "/srv/results/result", "--", "cat", "in"});
    CHECK_MESSAGE(job.out == "data\n", job.err);
    CHECK(read_text("/srv/results/out") == "data\n");
    CHECK(fs::exists("/srv/results/result"));
    for (const Words& pair : {Words{"--copy-in", "/srv/data/private/key:/tmp/x"},
                              {"--copy-out", "/etc/passwd:/srv/data/new"},
                              {"--copy-out", "/etc/passwd:/etc/new"}}) {
        const Ended ended = call({"sandbox", pair[0], pair[1], "--", "true"});
        WITHSTANDS(pair[1], ended.status == 125 && ended.err.find("policy: ") != std::string::npos);
    }
    CHECK(call({"audit", "verify"}, {}).status == 0);
}

TEST_CASE("policy: a profile of the caller's names no socket") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine(Forbidden::policy());
    const fs::path profile = machine.bundle.host() / "profile.json";
    write_text(profile, json{{"defaultAction", "SCMP_ACT_ALLOW"},
                             {"listenerPath", (machine.bundle.host() / "socket").string()},
                             {"syscalls", {{{"names", {"getppid"}}, {"action", "SCMP_ACT_NOTIFY"}}}}}
                            .dump());
    const Words job = {"sandbox", "--seccomp", profile, "--", "true"};
    const Words stays = {"sandbox", "-d", "--name", "box", "--seccomp", profile};
    for (const Words& words : {job, stays}) WITHSTANDS(words[1], refused(call(words), "policy: listenerPath: "));
    CHECK(call({"list", "-q"}).out.empty());
    // One that the administrator lists may have it.
    write_text(machine.system.path, "{\"profiles\": [" + quoted(profile) + "]}");
    CHECK(call(job).err.find("policy") == std::string::npos);
}

TEST_CASE("policy: a line that makes no sense, or is refused, writes nowhere where others could not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine(Forbidden::policy());
    const std::string allowed = machine.bundle.host() / "result";
    for (const std::string& target : {Forbidden::secret().string(), (Forbidden::path() / "new").string()}) {
        WITHSTANDS("--result", refused(call({"sandbox", "--nosuch", "--result", target}), "--result"));
        WITHSTANDS("--result", refused(call({"--policy", "/nonexistent", "sandbox", "--result", target, "true"}), ""));
        WITHSTANDS("--log", refused(call({"--log", target, "sandbox", "--nosuch"}), "--log"));
        WITHSTANDS("--log", refused(call({"--log", target, "nosuch"}), "--log"));
        WITHSTANDS("--result", refused(call({"exec", "--result", target, "gone", "true"}), "--result"));
    }
    for (const Words& words : {Words{"sandbox", "--nosuch", "--result", allowed, "--", "true"},
                               Words{"sandbox", "--limits", Forbidden::secret(), "--result", allowed, "--", "true"},
                               Words{"sandbox", "--ro-bind", Forbidden::path(), "--result", allowed, "--", "true"}}) {
        write_text(allowed, "of an earlier job");
        CHECK(call(words).status == 125);
        const json result = json::parse(read_text(allowed), nullptr, false);
        REQUIRE_MESSAGE(result.is_object(), words[1]);
        CHECK(result["status"] == "setup_failed");
        CHECK_MESSAGE(result.dump().find("/proc/self/fd") == std::string::npos, result.dump());
    }
}

namespace {

// The events of one kind that the policy's log has.
std::vector<json> logged(const fs::path& log, const std::string& kind) {
    std::vector<json> events;
    std::istringstream lines(fs::exists(log) ? read_text(log) : "");
    for (std::string line; std::getline(lines, line);) {
        json event = json::parse(line);
        if (event["event"] == kind) events.push_back(std::move(event));
    }
    return events;
}

std::string logging_to(const fs::path& log, const std::string& more = "") {
    return Forbidden::policy("\"audit\": " + quoted(log) + (more.empty() ? "" : ", " + more));
}

}  // namespace

TEST_CASE("policy: whatever it refuses, and whoever asks, is logged once") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine("{}");
    const fs::path log = machine.bundle.host() / "audit.log", secret = Forbidden::secret();
    write_text(machine.system.path, logging_to(log, R"("limits": {"memory_mb": 512}, "max_sandboxes": 1)"));
    REQUIRE(call({"sandbox", "-d", "--name", "box", "--memory", "256m"}).status == 0);
    const SpawnOptions root;
    const std::vector<std::pair<Words, SpawnOptions>> refusals = {
        {{"sandbox", "--memory", "1g", "--", "true"}, by_sudo()},
        {{"sandbox", "-d", "--memory", "1g", "--name", "b"}, by_sudo()},
        {{"sandbox", "--memory", "256m", "--", "true"}, root},  // one runs already
        {{"sandbox", "--memory", "256m", "-d", "--name", "b"}, root},
        {{"sandbox", "--memory", "256m", "--runtime", "./x", "--", "true"}, root},
        {{"sandbox", "--lang", "sh", secret}, root},
        {{"sandbox", "--ro-bind", secret.string() + ":/tmp/x", "--memory", "256m", "--", "true"}, root},
        {{"--policy", secret, "list"}, by_sudo()},
        {{"run", "-b", machine.bundle.path(), "x"}, by_sudo()},
        {{"cp", secret, "box:/tmp/x"}, root},
        {{"exec", "--cap", "CAP_SYS_ADMIN", "box", "true"}, root},
        {{"exec", "--cgroup", "x", "box", "true"}, root},
        {{"update", "--memory", "1g", "box"}, root},
    };
    for (const auto& refusal : refusals) {
        const auto& words = refusal.first;
        const size_t before = logged(log, "policy").size();
        const Ended ended = call(words, refusal.second);
        const std::vector<json> events = logged(log, "policy");
        INFO(words[0], " ", words[1], " ", words[2]);
        CHECK_MESSAGE(ended.err.find("policy: ") != std::string::npos, ended.err);
        REQUIRE(events.size() == before + 1);
        CHECK(ended.err.find(events.back()["refused"].get<std::string>()) != std::string::npos);
        const bool about_box =
            std::ranges::any_of(words, [](const std::string& word) { return word.starts_with("box"); });
        if (about_box) CHECK(events.back()["id"] == "box");
    }
    // What the kernel refuses is no policy's.
    const size_t before = logged(log, "policy").size();
    CHECK(call({"exec", "box", "/proc/version"}).status != 0);
    CHECK(logged(log, "policy").size() == before);
    CHECK(call({"audit", "verify"}, {}).status == 0);
    CHECK(call({"delete", "--force", "box"}).status == 0);
}

TEST_CASE("policy: the log has the names that the caller has used") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine("{}");
    const fs::path host = machine.bundle.host(), log = host / "audit.log";
    write_text(machine.system.path, logging_to(log));
    write_text(host / "profile.json", R"({"defaultAction": "SCMP_ACT_ALLOW"})");
    REQUIRE(call({"sandbox", "-d", "--name", "box", "--seccomp", host / "profile.json"}).status == 0);
    CHECK(call({"cp", "box:/etc/passwd", host / "a \"b\""}).status == 0);
    CHECK(call({"cp", host / "a \"b\"", "box:/tmp/x"}).status == 0);
    CHECK(call({"cp", host / "nosuch", "box:/tmp/x"}).status == 1);
    CHECK(call({"cp", "box:/tmp", host / "a \"b\"/c"}).status == 1);
    CHECK(call({"exec", "box", "echo", "/proc/self/fd/3"}).status == 0);
    CHECK(logged(log, "sandbox").at(0)["seccomp"] == (host / "profile.json").string());
    const std::vector<json> copies = logged(log, "copy");
    REQUIRE(copies.size() >= 4);
    CHECK(copies[0]["target"] == (host / "a \"b\"").string());
    CHECK(copies[1]["source"] == (host / "a \"b\"").string());
    CHECK(copies[2]["source"] == (host / "nosuch").string());
    CHECK(copies[3]["error"].get<std::string>().find((host / "nosuch").string()) != std::string::npos);
    for (const json& copy : copies) CHECK(copy.dump().find("/proc/self/fd/") == std::string::npos);
    CHECK(logged(log, "exec").at(0)["args"].at(1) == "/proc/self/fd/3");
    CHECK(call({"audit", "verify"}, {}).status == 0);
    CHECK(call({"delete", "--force", "box"}).status == 0);
}

// What sudo(8) lets through besides words.
TEST_CASE("policy: by limits of its own no caller keeps an event out of the log") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/prlimit")) SKIP_TEST("needs prlimit");
    const Forbidden vault;
    const Machine machine("{}");
    const fs::path log = machine.bundle.host() / "audit.log";
    write_text(machine.system.path, logging_to(log));
    REQUIRE(call({"sandbox", "-d", "--name", "box"}).status == 0);
    const auto limited = [&](const std::string& limit, const Words& words) {
        Words line = {"/usr/bin/prlimit", limit};
        for (const std::string& word : line_of(words)) line.push_back(word);
        return run_program(line, by_sudo());
    };
    const Words forbidden = {"sandbox", "--ro-bind", Forbidden::secret().string() + ":/tmp/x", "--", "true"};
    const Words exec = {"exec", "--timeout", "1m", "box", "true"};
    for (const std::string resource : {"--fsize=", "--cpu=", "--nofile=", "--data=", "--as="}) {
        // A limit that the caller could raise, and one that takes a capability.
        for (const std::string colon : {":", ""}) {
            const std::string value = resource == "--fsize="    ? std::to_string(fs::file_size(log) + 600)
                                      : resource == "--nofile=" ? "12"
                                      : resource == "--cpu="    ? "5"
                                                                : "67108864";
            std::string limit = resource + value;
            limit += colon;
            const size_t refusals = logged(log, "policy").size(), ends = logged(log, "exec-end").size();
            const Ended refused_one = limited(limit, forbidden), ended = limited(limit, exec);
            const auto told = [](const Ended& one) {
                return one.err.find("raise the caller's RLIMIT_") != std::string::npos;
            };
            const bool may_be_told = colon.empty();
            INFO(limit, refused_one.err, ended.err);
            WITHSTANDS(limit, logged(log, "policy").size() == refusals + 1 || (may_be_told && told(refused_one)));
            WITHSTANDS(limit, logged(log, "exec-end").size() == ends + 1 || (may_be_told && told(ended)));
        }
    }
    CHECK(call({"audit", "verify"}, {}).out.find("chain whole\n") != std::string::npos);
    CHECK(logged(log, "gap").empty());
    CHECK(logged(log, "torn").empty());
    CHECK(call({"delete", "--force", "box"}).status == 0);
}

TEST_CASE("policy: by a cgroup of its own no caller freezes or kills what logs") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    const Machine machine("{}");
    const fs::path log = machine.bundle.host() / "audit.log";
    write_text(machine.system.path, logging_to(log));
    const fs::path group = cgroup2_mount() / ("delegated-" + machine.bundle.id());
    REQUIRE(fs::create_directory(group));
    REQUIRE(::chown((group / "cgroup.freeze").c_str(), 65000, 65000) == 0);
    if (!fs::exists(group / "cgroup.kill")) {
        fs::remove(group);
        SKIP_TEST("cgroup.kill is not there before Linux 5.14");
    }
    // As sudo does, it stays in the group of its caller.
    Words line = {"/bin/sh", "-c", "echo $$ > \"$0/cgroup.procs\"; exec \"$@\"", group};
    const Words job = {"sandbox", "--stdin", "--name", "box", "--", "sh", "-c", "echo up; read line; exit 3"};
    for (const std::string& word : line_of(job)) line.push_back(word);
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd input(ends[0]);
    UniqueFd feed(ends[1]);
    SpawnOptions spawn = by_sudo();
    spawn.fds.push_back({0, input.get()});
    {
        Process running(line, spawn);
        REQUIRE(running.read_line() == "up");
        write_text(group / "cgroup.kill", "1");
        feed.reset();
        const Ended ended = running.finish();
        WITHSTANDS("cgroup.kill", ended.status == 3);
        WITHSTANDS("cgroup.kill", logged(log, "end").size() == 1);
    }
    CHECK(fs::remove(group));
}

TEST_CASE("policy: a link in the caller's own directory leads nowhere") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine(Forbidden::policy());
    const fs::path own = machine.bundle.host() / "own";
    fs::create_directory(own);
    for (const char* option : {"--log", "--audit"}) {
        plant(own / "link", Forbidden::secret());
        call({option, own / "link", "sandbox", "--debug", "--", "true"});
        WITHSTANDS(option, Forbidden::untouched());
        plant(own / "link", Forbidden::path() / "new");
        call({option, own / "link", "list"});
        WITHSTANDS(option, Forbidden::untouched());
    }
    plant(own / "link", Forbidden::secret());
    call({"sandbox", "--result", own / "link", "--", "true"});
    WITHSTANDS("--result", Forbidden::untouched());
    plant(own / "link", Forbidden::path());
    WITHSTANDS("--rootfs", refused(call({"sandbox", "--rootfs", own / "link", "--", "true"})));
    WITHSTANDS("--result below a link", refused(call({"sandbox", "--result", own / "link/new", "--", "true"})));
}

TEST_CASE("policy: roots are judged like directories that are bound, whoever calls") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    const Machine machine(Forbidden::policy());
    machine.bundle.write_config();
    const fs::path host = machine.bundle.host();
    fs::create_directories(host / "bundle");
    json config = machine.bundle.config;
    config["root"]["path"] = Forbidden::path().string();
    write_text(host / "bundle/config.json", config.dump());
    for (const SpawnOptions& spawn : {by_sudo(), SpawnOptions{}}) {
        WITHSTANDS("--rootfs", refused(call({"sandbox", "--rootfs", Forbidden::path(), "--", "true"}, spawn)));
        WITHSTANDS("--log", refused(call({"--log", Forbidden::path() / "new", "sandbox", "--", "true"}, spawn)));
        WITHSTANDS("above it", refused(call({"sandbox", "--rootfs", playground(), "--", "true"}, spawn)));
        WITHSTANDS("--bundle", refused(call({"sandbox", "--bundle", host / "bundle"}, spawn)));
        // Not even by a refusal is it told what there is.
        for (const std::string name : {"secret", "s*", "absent", "a*"}) {
            json recipe = {{"description", "x"}, {"show", {"/usr", "/lib*", (Forbidden::path() / name).string()}}};
            write_text(host / "recipe.json", recipe.dump());
            const std::string look = "test ! -e " + Forbidden::secret().string() + " && echo hidden";
            const Ended shown =
                call({"sandbox", "--template", host / "recipe.json", "--", "/usr/bin/sh", "-c", look}, spawn);
            WITHSTANDS("--template", shown.out == "hidden\n" && shown.err.empty());
            recipe["show"] = {(Forbidden::path() / name).string()};
            write_text(host / "recipe.json", recipe.dump());
            const Ended alone = call({"sandbox", "--template", host / "recipe.json", "--", "true"}, spawn);
            WITHSTANDS("a template's names", refused(alone, "this machine has none of it that may be shown"));
        }
        WITHSTANDS("built in", refused(call({"sandbox", "--rootfs", "/", "--", "true"}, spawn), "policy: / contains"));
    }
    // What pinfold shows by itself, too.
    write_text(machine.system.path, R"({"forbidden_paths": ["/usr/lib"]})");
    WITHSTANDS("the default root", refused(call({"sandbox", "--", "true"}, {})));
}

TEST_CASE("policy: by sudo only sandboxes, and what can be done with one") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Forbidden vault;
    Machine machine(Forbidden::policy("\"limits\": {\"memory_mb\": 256, \"max_processes\": 60}"));
    machine.bundle.probe({"wait-signal"}).write_config();
    const fs::path bundle = machine.bundle.path();
    for (const Words& words : {Words{"run", "-b", bundle, "x"},
                               {"create", "-b", bundle, "x"},
                               {"start", "x"},
                               {"update", "--memory", "1m", "x"},
                               {"spec", "-b", bundle},
                               {"audit", "show", "/etc/passwd"},
                               {"seccomp", "learn", "--", "true"}}) {
        WITHSTANDS(words[0], refused(call(words), "policy: verbs"));
        const SpawnOptions by_doas{.env = {"DOAS_USER=ann"}}, by_pkexec{.env = {"PKEXEC_UID=65000"}};
        WITHSTANDS(words[0], refused(call(words, by_doas), "policy: verbs"));
        WITHSTANDS(words[0], refused(call(words, by_pkexec), "policy: verbs"));
    }
    // Root itself, and an engine that somebody has started by sudo, go on as ever, and where they like.
    const SpawnOptions engine{.env = {"SUDO_UID=65000", "SUDO_COMMAND=/usr/bin/env podman"}};
    const Words create = {
        "--log", Forbidden::path() / "log", "create", "--pid-file", Forbidden::path() / "pid", "-b", bundle, "engines"};
    const Ended created = call(create, engine);
    CHECK_MESSAGE(created.status == 0, created.err);
    CHECK(fs::remove(Forbidden::path() / "pid"));
    CHECK(fs::remove(Forbidden::path() / "log"));
    CHECK(call({"start", "engines"}, {}).status == 0);
    CHECK(call({"exec", "-c", "CAP_SYS_ADMIN", "engines", "/probe", "exit", "0"}, {}).status == 0);
    const Ended updated = call({"update", "--pids-limit", "500", "engines"}, {});  // not every host has groups for it
    CHECK_MESSAGE(updated.err.find("policy") == std::string::npos, updated.err);
    for (const Words& words : {Words{"exec", "engines", "/probe", "report"},
                               {"kill", "engines"},
                               {"state", "engines"},
                               {"delete", "--force", "engines"},
                               {"cp", "engines:/probe", machine.bundle.host() / "x"}}) {
        WITHSTANDS(words[0], refused(call(words), "policy: container 'engines' is no sandbox"));
    }
    // Nor with what root shows to a sandbox of its own.
    const std::string shows = std::string("echo \"") + Forbidden::kText + "\" | tee /tmp/s; exec sleep 1000";
    const Ended roots = call({"sandbox", "-d", "--memory", "64m", "--name", "roots", "--", "sh", "-c", shows}, {});
    REQUIRE_MESSAGE(roots.status == 0, roots.err);
    for (const Words& words : {Words{"exec", "roots", "cat", "/tmp/s"},
                               {"cp", "roots:/tmp/s", "-"},
                               {"logs", "roots"},
                               {"wait", "roots"},
                               {"state", "roots"},
                               {"ps", "roots"},
                               {"pause", "roots"},
                               {"stop", "roots"},
                               {"delete", "--force", "roots"}}) {
        WITHSTANDS(words[0] + " roots", refused(call(words), "policy: sandbox 'roots' is root's own"));
    }
    CHECK(call({"stop", "--time", "0s", "roots"}, {}).status == 0);
    WITHSTANDS("prune", call({"prune"}).out.empty() && call({"list", "-q"}).out.empty());
    CHECK(call({"prune"}, {}).out == "roots\n");
    CHECK(call({"list", "-q"}, {}).out == "engines\n");
    WITHSTANDS("list", call({"list", "-q"}).out.empty());
    CHECK(call({"delete", "--force", "engines"}, {}).status == 0);
    // In a sandbox nobody gets more than it was started with.
    REQUIRE(call({"sandbox", "-d", "--memory", "64m", "--name", "box"}).status == 0);
    CHECK(call({"exec", "box", "true"}).status == 0);
    const Ended root = call({"exec", "-u", "0", "box", "grep", "Cap[EPB]", "/proc/self/status"});
    WITHSTANDS("exec -u 0",
               root.status == 0 &&
                   root.out.find_first_of("123456789abcdef", root.out.find("CapPrm:") + 7) > root.out.find("CapEff:"));
    write_text(machine.bundle.host() / "process.json",
               R"({"args": ["true"], "cwd": "/", "user": {"uid": 0, "gid": 0}})");
    for (const SpawnOptions& spawn : {by_sudo(), SpawnOptions{}}) {
        WITHSTANDS("exec -c", refused(call({"exec", "-u", "0", "-c", "CAP_SYS_ADMIN", "box", "true"}, spawn)));
        WITHSTANDS("exec -p", refused(call({"exec", "-p", machine.bundle.host() / "process.json", "box"}, spawn)));
    }
    for (const Words& more : {Words{"--memory", "1g"},
                              {"--memory", "-1"},
                              {"--memory-swap", "-1"},
                              {"--pids-limit", "-1"},
                              {"--pids-limit", "100"}}) {
        WITHSTANDS(more[0], refused(call({"update", more[0], more[1], "box"}, {}), "policy: limits."));
    }
    CHECK(call({"update", "--pids-limit", "50", "box"}, {}).status == 0);
    WITHSTANDS("without groups", refused(call({"--cgroup-manager", "disabled", "sandbox", "--", "true"})));
    CHECK(call({"delete", "--force", "box"}).status == 0);
    // What a policy lists holds for everybody.
    write_text(machine.system.path, R"({"verbs": ["sandbox", "list"]})");
    WITHSTANDS("run", refused(call({"run", "-b", bundle, "x"}, {}), "policy: verbs: 'run'"));
    CHECK(call({"list"}, {}).status == 0);
}

// The seconds that a timer of the process has still to run, as the kernel tells.
static std::optional<long> timer_of(pid_t pid) {
    constexpr std::string_view kKey = "\nit_value: (";
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo")) {
        const std::string text = read_text(entry.path());
        const size_t place = text.find(kKey);
        if (place != text.npos) return std::stol(text.substr(place + kKey.size()));
    }
    return std::nullopt;
}

TEST_CASE("policy: a sandbox that stays lives no longer than one that does not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Machine machine(R"({"limits": {"timeout_seconds": 60}})");
    REQUIRE(call({"sandbox", "-d", "--name", "box"}).status == 0);
    const std::optional<long> left = timer_of(json::parse(call({"state", "box"}).out)["pid"]);
    WITHSTANDS("no --timeout", left && *left <= 60);
    CHECK(call({"delete", "--force", "box"}).status == 0);
    write_text(machine.system.path, R"({"limits": {"timeout_seconds": 1}})");
    REQUIRE(call({"sandbox", "-d", "--name", "box"}).status == 0);
    const auto start = std::chrono::steady_clock::now();
    while (json::parse(call({"state", "box"}).out)["status"] != "stopped") {
        if (std::chrono::steady_clock::now() - start > patience()) FAIL("the sandbox still runs");
    }
    CHECK(call({"delete", "box"}).status == 0);
    WITHSTANDS("--timeout", call({"sandbox", "-d", "--timeout", "1h", "--name", "box"}).err.find("3600 is above 1") !=
                                std::string::npos);
}

TEST_CASE("policy: one that logs says to those who cannot write there how to come") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const fs::path log = bundle.host() / "closed/audit.log";
    const SpawnOptions user = normal_user(bundle);
    fs::create_directory(log.parent_path());
    REQUIRE(::chmod(log.parent_path().c_str(), 0700) == 0);
    REQUIRE(::chown(log.parent_path().c_str(), 0, 0) == 0);
    const SystemPolicy system(bundle, "{\"audit\": " + quoted(log) + "}");
    const Ended ended = run_job(bundle, {{}, {"true"}, user});
    CHECK(ended.status == 125);
    CHECK_MESSAGE(ended.err.find("audit: open " + log.string()) != std::string::npos, ended.err);
    CHECK_MESSAGE(ended.err.find("hint: the policy has this logged") != std::string::npos, ended.err);
    const Bundle roots;
    CHECK(run_job(roots, {{}, {"true"}, {}}).status == 0);
}

// What no sandbox is given is root's own to name where nobody has made a rule.
TEST_CASE("policy: without one, root copies and runs what it can read") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const MountGuard home("tmpfs", "/root", "tmpfs", 0);
    write_text("/root/script", "echo from root\n");
    CHECK(run_job(bundle, {{"--lang", "sh", "/root/script"}, {}, {}}).out == "from root\n");
    REQUIRE(run_job(bundle, {{"--detach"}, {}, {}}).status == 0);
    const std::string copy = bundle.id() + ":/workspace/copy";
    CHECK(run_program(bundle.verb({"cp", "/root/script", copy})).status == 0);
    CHECK(run_program(bundle.verb({"cp", copy, "/root/back"})).status == 0);
    CHECK(read_text("/root/back") == "echo from root\n");
    write_text(bundle.host() / "policy.json", "{}");
    for (const Words& sides : {Words{"/root/script", copy}, Words{copy, "/root/back"}}) {
        Words words = {"--policy", bundle.host() / "policy.json", "cp"};
        words.insert(words.end(), sides.begin(), sides.end());
        const Ended ended = run_program(bundle.verb(words));
        const std::string told =
            sides[1] == copy ? "cp: SOURCE: /root/script: policy: " : "cp: TARGET: /root/back: policy: ";
        CHECK_MESSAGE(ended.err.find(told) != std::string::npos, ended.err);
    }
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
}

// The rule that is shipped, by sudo itself, with what an attacker would add to what it allows.
TEST_CASE("policy: the shipped rule for sudo gives sandboxes and nothing else") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!fs::exists("/usr/bin/sudo")) SKIP_TEST("needs sudo");
    const Forbidden vault;
    const Machine machine(Forbidden::policy("\"limits\": {\"timeout_seconds\": 60}"));
    std::string rule = read_text(PINFOLD_SUDOERS);
    const std::string installed = "@BINDIR@/pinfold";
    for (size_t at; (at = rule.find(installed)) != rule.npos;) rule.replace(at, installed.size(), program());
    fs::remove("/etc/sudoers");
    write_text("/etc/sudoers", rule);
    REQUIRE(::chmod("/etc/sudoers", 0440) == 0);
    const std::string id = std::to_string(kNobodySpecial);
    write_text("/etc/passwd", read_text("/etc/passwd") + "stranger:x:" + id + ":" + id + "::/:/bin/sh\n");
    write_text("/etc/group", read_text("/etc/group") + "sandbox:x:" + id + ":stranger\n");
    write_text("/etc/shadow", read_text("/etc/shadow") + "stranger:*:19000:0:99999:7:::\n");
    const auto sudo = [&](Words words, Words before = {}) {
        Words line = {"/usr/bin/sudo", "-n"};
        line.insert(line.end(), before.begin(), before.end());
        line.push_back(program());
        line.insert(line.end(), words.begin(), words.end());
        return run_program(line, {.uid = kNobodySpecial});
    };
    const Ended allowed = sudo({"sandbox", "--", "echo", "inside"});
    REQUIRE_MESSAGE(allowed.out == "inside\n", allowed.err);
    // All that WHO IS BOUND in pinfold-policy(5) lists, with options and without.
    const std::vector<Words> given = {{"sandbox", "-d", "--name", "box"},
                                      {"exec", "box", "true"},
                                      {"cp", "box:/etc/passwd", "-"},
                                      {"state", "box"},
                                      {"list"},
                                      {"list", "-q"},
                                      {"ps", "--format", "json", "box"},
                                      {"pause", "box"},
                                      {"resume", "box"},
                                      {"events", "--stats", "box"},
                                      {"prune"},
                                      {"prune", "--dry-run"},
                                      {"features"},
                                      {"seccomp", "show"},
                                      {"seccomp", "show", "default"},
                                      {"seccomp", "diff", "default", "strict"},
                                      {"kill", "box", "TERM"},
                                      {"delete", "--force", "box"}};
    for (const Words& words : given) {
        const Ended ended = sudo(words);
        INFO(words[0], " ", words.back());
        CHECK_MESSAGE(ended.status == 0, ended.err);
    }
    const std::string secret = Forbidden::secret(), entry = Forbidden::path() / "new";
    const std::vector<Words> attacks = {
        {"sandbox", "--rootfs", "/", "--", "cat", "/etc/shadow"},
        {"sandbox", "--ro-bind", "/etc/shadow:/tmp/x", "--", "cat", "/tmp/x"},
        {"sandbox", "--copy-in", secret + ":/tmp/x", "--", "cat", "/tmp/x"},
        {"sandbox", "--result", entry, "--", "true"},
        {"sandbox", "--runtime", secret, "--", "true"},
        {"sandbox", "--lang", "bash", secret},
        {"sandbox", "--limits", secret, "--", "true"},
        {"sandbox", "--seccomp", secret, "--", "true"},
        {"sandbox", "--timeout", "2h", "--", "true"},
        {"--root", "/tmp/other", "sandbox", "--", "true"},
        {"--log", entry, "sandbox", "--", "true"},
        {"run", "-b", machine.bundle.path(), "x"},
        {"sandbox", "run", "--log", entry},
        {"spec", "-b", Forbidden::path()},
    };
    for (const Words& words : attacks) {
        const Ended ended = sudo(words);
        WITHSTANDS(words[0] + " " + words[1], refused(ended, ""));
    }
    // The variables that tell of sudo are sudo's to set.
    const Words run_it = {"run", "-b", machine.bundle.path(), "x"};
    for (const Words& before : {Words{"SUDO_UID=0"}, {"-E"}, {"PATH=/tmp", "SUDO_COMMAND=/bin/sh"}}) {
        WITHSTANDS(before[0], refused(sudo(run_it, before), ""));
        const Ended ended = sudo({"sandbox", "--result", entry, "--", "true"}, before);
        WITHSTANDS(before[0], refused(ended, ""));
    }
}

TEST_CASE("policy: sandboxes are counted from the first one on, one at a time, and without the dead") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Machine machine(R"({"max_sandboxes": 3})");
    const fs::path states = "/run/pinfold";
    REQUIRE(!fs::exists(states));
    const Ended first = call({"sandbox", "--", "true"}, {});
    CHECK_MESSAGE(first.status == 0, first.err);
    // Whose creator was killed: a record, and nobody at work on it.
    REQUIRE(call({"sandbox", "-d", "--name", "box"}, {}).status == 0);
    json record = json::parse(read_text(states / "box/state.json"));
    for (const std::string id : {"dead-1", "dead-2", "dead-3"}) {
        record["id"] = id;
        fs::create_directory(states / id);
        write_text(states / id / "state.json", record.dump());
        fs::copy_file(states / "box/config.json", states / id / "config.json");
    }
    CHECK(call({"sandbox", "--", "true"}, {}).status == 0);
    CHECK(call({"prune"}, {}).out == "dead-1\ndead-2\ndead-3\n");
    CHECK(call({"list", "-q"}, {}).out == "box\n");
    // Many at once: no more than there is room for.
    std::vector<std::unique_ptr<Process>> starts;
    for (int i = 0; i < 12; ++i) {
        starts.push_back(
            std::make_unique<Process>(line_of({"sandbox", "-d", "--name", "b" + std::to_string(i)}), SpawnOptions{}));
    }
    int started = 0;
    for (const auto& start : starts) {
        const Ended ended = start->finish();
        if (ended.status == 0) ++started;
        else CHECK_MESSAGE(ended.err.find("max_sandboxes: 3 of 3 run already") != std::string::npos, ended.err);
    }
    CHECK(started == 2);
    // What one that has ended has printed takes room, until it is removed.
    std::istringstream running(call({"list", "-q"}, {}).out);
    for (std::string id; running >> id;) CHECK(call({"delete", "--force", id}, {}).status == 0);
    for (const std::string id : {"e1", "e2", "e3"}) {
        CHECK(call({"sandbox", "-d", "--name", id, "--", "echo", "words"}, {}).status == 0);
        CHECK(call({"wait", id}, {}).status == 0);
    }
    WITHSTANDS("kept output",
               call({"sandbox", "--", "true"}, {}).err.find("max_sandboxes: 3 of 3") != std::string::npos);
    CHECK(call({"prune"}, {}).out == "e1\ne2\ne3\n");
    CHECK(call({"sandbox", "--", "true"}, {}).status == 0);
    // Another directory is no way to count anew.
    const Ended elsewhere = call({"--root", machine.bundle.state_root(), "sandbox", "--", "true"}, {});
    WITHSTANDS("--root", elsewhere.status == 125 && elsewhere.err.find("policy: max_sandboxes") != std::string::npos);
    std::istringstream left(call({"list", "-q"}, {}).out);
    for (std::string id; left >> id;) CHECK(call({"delete", "--force", id}, {}).status == 0);
}

TEST_CASE("policy: a directory in which somebody answers at a socket is not bound") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const fs::path shared = bundle.host() / "shared";
        fs::create_directories(shared / "below");
        const std::string path = shared / "below/s";
        const auto bind_it = [&](const char* option) {
            return run_job(bundle, {{option, shared.string() + ":/data"}, {"ls", "/data"}, spawn});
        };
        CHECK(bind_it("--ro-bind").out == "below\n");
        for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
            const UniqueFd server(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
            sockaddr_un address{};
            address.sun_family = AF_UNIX;
            REQUIRE(path.size() < sizeof address.sun_path);
            path.copy(address.sun_path, path.size());
            REQUIRE(::bind(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
            if (type == SOCK_STREAM) REQUIRE(::listen(server.get(), 1) == 0);
            REQUIRE(::chmod(path.c_str(), 0777) == 0);
            for (const char* option : {"--bind", "--ro-bind"}) {
                const Ended ended = bind_it(option);
                WITHSTANDS(option,
                           ended.status == 125 && ended.err.find("contains the socket " + path) != std::string::npos);
            }
            fs::remove(path);
        }
        CHECK(bind_it("--bind").out == "below\n");
    }
}
