// Whoever comes into a container, seen by those who live there: nothing of the host's may come along. A process inside
// looks at each that shows up, again and again, with all the rights that it has; many come in meanwhile.
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <sstream>

#include "attacks.hpp"
#include "cp.hpp"
#include "process/spawn.hpp"
#include "sandbox.hpp"
#include "terminal.hpp"

namespace pinfold::integration {

namespace {

using As = Container::As;
using Words = std::vector<std::string>;
using Enter = std::function<Ended(const Container&)>;

constexpr const char* kWord = "PINFOLD_HOST_WORD";

// What a caller has in its environment is its own.
SpawnOptions caller(SpawnOptions spawn = {}) {
    spawn.env.push_back(std::string(kWord) + "=kept");
    return spawn;
}

void may_trace(Bundle& bundle) {
    for (const char* set : {"bounding", "effective", "permitted"})
        bundle.config["process"]["capabilities"][set] = {"CAP_SYS_PTRACE", "CAP_KILL", "CAP_DAC_READ_SEARCH"};
}

// A filter that is loaded before all rights are gone, unless no new ones can be had. What it denies may be something
// that a start needs in the end: it cannot be loaded early then.
void add_filter(Bundle& bundle, bool no_new_privileges, const char* denied = "swapon") {
    bundle.config["process"]["noNewPrivileges"] = no_new_privileges;
    bundle.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"},
                                         {"syscalls", {{{"names", {denied}}, {"action", "SCMP_ACT_ERRNO"}}}}};
}

std::string host_root() {
    struct stat root {};
    REQUIRE(::stat("/", &root) == 0);
    return std::to_string(root.st_dev) + ":" + std::to_string(root.st_ino);
}

std::string host_namespaces() {
    std::string names;
    for (const char* name : {"mnt", "net", "ipc", "uts"}) names += own_namespace(name) + " ";
    return names;
}

// Two hundred of them, seen at least once.
json seen_from_inside(Bundle& bundle, const RunOptions& options, const Enter& enter) {
    const Vault vault(bundle);
    bundle.probe({"reach", vault.secret(), kWord, host_root(), host_namespaces()});
    const Container container(bundle, As::running, options);
    CHECK(await_file(bundle.host() / "output").starts_with("READY"));
    for (Rounds rounds(200); rounds.go_on();) {
        const Ended ended = enter(container);
        CHECK_MESSAGE(ended.status == 0, ended.err);
    }
    CHECK(vault.untouched());
    container.must({"kill", bundle.id(), "TERM"});
    container.await_end();
    const std::string output = read_text(bundle.host() / "output");
    return json::parse(output.substr(output.find('{')));
}

void check_unseen(const std::string& what, const json& answer) {
    WITHSTANDS(what + ": " + answer.dump(), answer["reached"] == json::array());
}

Enter exec_of(const std::vector<std::string>& options) {
    return [options](const Container& container) { return container.exec(options, {"/probe", "exit", "0"}, caller()); };
}

}  // namespace

TEST_CASE("entry: exec brings nothing of the host's in, as a container sees that may trace all of its processes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::vector<std::string>> ways = {
        {}, {"--user", "1000:1000"}, {"--strict"}, {"--timeout", "60s"}, {"--cwd", "/tmp", "--env", "A=B"}};
    for (const auto& options : ways) {
        Bundle bundle;
        may_trace(bundle);
        const json answer = seen_from_inside(bundle, {}, exec_of(options));
        CHECK(answer["met"] > 0);
        check_unseen("exec " + json(options).dump(), answer);
    }
}

// No right is needed for it where both have the same user.
TEST_CASE("entry: who is stopped on its way in is given up at the deadline, or at a signal, and is gone") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"stop-others"});
    const Container container(bundle, As::running);
    CHECK(await_file(bundle.host() / "output").starts_with("READY"));
    // One that was through before it was stopped is no attack: its program has ended, or had the signal itself.
    const auto was_through = [](const Ended& ended) {
        return ended.status == 0 || (ended.status == 128 + SIGTERM && ended.err.empty());
    };
    const auto until_struck = [&](const std::function<Ended()>& attack) {
        Ended ended = attack();
        for (Rounds rounds(100); was_through(ended) && rounds.go_on();) ended = attack();
        return ended;
    };
    const Ended late = until_struck([&] { return container.exec({"--timeout", "1s"}, {"/probe", "exit", "0"}); });
    WITHSTANDS("a deadline", late.status == 124);
    for (const Words& options : {Words{}, Words{"--strict"}}) {
        Words words = {"exec"};
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {bundle.id(), "/probe", "exit", "0"});
        const auto processes = [&] {
            return json::parse(container.must({"ps", "--format", "json", bundle.id()})).size();
        };
        const Ended ended = until_struck([&] {
            Process entering(bundle.verb(words), {});
            for (Rounds rounds(100); processes() == 1 && rounds.go_on();) ::sched_yield();
            entering.signal(SIGTERM);  // it is the program's for a second, and then it is pinfold's
            return entering.finish();
        });
        WITHSTANDS("a signal", ended.status != 0 && !ended.err.empty());
    }
    CHECK(json::parse(container.must({"ps", "--format", "json", bundle.id()})).size() == 1);
}

// Nor for this, where Yama does not forbid it.
TEST_CASE("entry: who is traced by somebody that never waits for it ends all the same, and its end is known") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    bundle.probe({"trace-others"});
    const Container container(bundle, As::running);
    CHECK(await_file(bundle.host() / "output").starts_with("READY"));
    const std::string result = bundle.host() / "result.json";
    const Ended late = container.exec({"--timeout", "1s", "--result", result}, {"/probe", "sleep-forever"});
    WITHSTANDS("a deadline: " + late.err, late.status == 124);
    CHECK(json::parse(read_text(result))["status"] == "timed_out");
    for (Rounds rounds(5); rounds.go_on();) {
        const Ended ended = container.exec({}, {"/probe", "exit", "7"});
        WITHSTANDS("an end: " + ended.err, ended.status == 7);
    }
    // Orphaned, they are our children. Once their tracer has ended, the container does when they are reaped.
    container.must({"kill", bundle.id(), "KILL"});
    std::istringstream orphans(read_text("/proc/thread-self/children"));
    for (pid_t pid = 0; orphans >> pid;) {
        if (pid != container.pid()) ::waitpid(pid, nullptr, __WALL);
    }
    container.await_end();
}

// What is not reaped would become a child of ours, and keep the container from ending.
TEST_CASE("entry: who is traced by somebody that waits for it late is reaped by pinfold") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    bundle.probe({"trace-slowly"});
    const Container container(bundle, As::running);
    CHECK(await_file(bundle.host() / "output").starts_with("READY"));
    for (Rounds rounds(3); rounds.go_on();) {
        const Ended ended = container.exec({}, {"/probe", "exit", "7"});
        WITHSTANDS("an end: " + ended.err, ended.status == 7);
        WITHSTANDS("nobody left", read_text("/proc/thread-self/children") == std::to_string(container.pid()) + " ");
    }
}

TEST_CASE("entry: who holds the channel of a process that comes in does not hold up exec beyond its program's end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    bundle.probe({"hold-channels"});
    const Container container(bundle, As::running);
    CHECK(await_file(bundle.host() / "output").starts_with("READY"));
    for (Rounds rounds(20); rounds.go_on();) {
        const Ended ended = container.exec({}, {"/probe", "exit", "7"});
        WITHSTANDS("an end: " + ended.err, ended.status == 7);
    }
    container.must({"kill", bundle.id(), "TERM"});
    container.await_end();
    const std::string output = read_text(bundle.host() / "output");
    CHECK(json::parse(output.substr(output.find('{')))["met"] > 0);
}

// With CAP_SYS_PTRACE its end of the channel to pinfold can be taken. What is said there is weighed against what was
// planned, and against what the kernel says.
TEST_CASE("entry: who speaks in the place of a process that comes in is not believed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    struct Way {
        Message said;
        Words options;
        const char* answer;
    };
    const Way ways[] = {
        {Message::ready, {"--strict"}, "does not wait as it was told to: somebody in the container spoke"},
        {Message::born, {}, "pinfold's own process said 'born' where 'ready' was next"},
        {Message::failed, {"--timeout", "60s"}, ""}};
    for (const Way& way : ways) {
        Bundle bundle;
        may_trace(bundle);
        bundle.probe({"speak-for-others", std::to_string(int(way.said))});
        const Container container(bundle, As::running);
        CHECK(await_file(bundle.host() / "output").starts_with("READY"));
        Ended ended;
        bool believed = false, told = false;
        for (Rounds rounds(300); rounds.go_on() && !told;) {
            ended = container.exec(way.options, {"/probe", "exit", "7"}, caller());
            told = ended.status == 255 && ended.err.find(way.answer) != ended.err.npos;
            believed = believed || ended.status == 0 || ended.status == 124;
        }
        // What had come in is reaped: the container could not end before.
        CHECK(read_text("/proc/thread-self/children") == std::to_string(container.pid()) + " ");
        WITHSTANDS("a forged message: " + ended.err, told && !believed);
    }
}

// Without no_new_privs it takes CAP_SYS_ADMIN to load a filter: who comes in has it loaded before it is seen, unless
// the filter forbids what is still to be done then, or somebody has to hear or see something in between.
TEST_CASE("entry: exec does not bring in the right to load its filter, as a container sees that may trace it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::vector<std::string>> ways = {
        {}, {"--user", "1000:1000"}, {"--cwd", "/tmp"}, {"--tty", "--console-socket", ""}};
    for (auto options : ways) {
        Bundle bundle;
        may_trace(bundle);
        add_filter(bundle, false);
        const DescriptorSocket socket(bundle.host() / "console");
        const bool in_terminal = options.size() == 3;
        if (in_terminal) options.back() = socket.path();
        const json answer = seen_from_inside(bundle, {}, [&](const Container& container) {
            const Ended ended = container.exec(options, {"/probe", "exit", "0"}, caller());
            if (in_terminal) CHECK(socket.receive());
            return ended;
        });
        CHECK(answer["met"] > 0);
        check_unseen("exec " + json(options).dump(), answer);
    }
}

TEST_CASE("entry: an exec that needs a right until its execve is refused where it could be taken over") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    struct Way {
        Words options;
        bool no_new_privileges;
        const char* denied;
        bool refused;
    };
    const std::vector<Way> ways = {
        {{"--strict"}, false, "swapon", true},          {{"--timeout", "60s"}, false, "swapon", true},
        {{"--strict"}, true, "swapon", false},          {{}, false, "recvmsg", true},
        {{"--timeout", "60s"}, true, "recvmsg", false}, {{}, true, "recvmsg", false}};
    for (const Way& way : ways) {
        INFO(json(way.options).dump(), way.no_new_privileges, std::string(way.denied));
        Bundle bundle;
        may_trace(bundle);
        add_filter(bundle, way.no_new_privileges, way.denied);
        bundle.probe({"wait-signal"});
        const Container container(bundle, As::running);
        const Ended ended = container.exec(way.options, {"/probe", "exit", "0"}, caller());
        const bool refused = ended.status != 0 && ended.err.find("may have CAP_SYS_PTRACE") != ended.err.npos;
        WITHSTANDS("exec: " + ended.err, refused == way.refused && (refused || ended.status == 0));
    }
}

namespace {

// What a start takes in the end, with or without a wait for it and hooks, and what the probe needs itself.
const Words kEndOfStart = {"clone",     "close",     "close_range",   "sendmsg",      "recvmsg",        "write",
                           "poll",      "ppoll",     "prctl",         "setsid",       "ioctl",          "getrlimit",
                           "setrlimit", "prlimit64", "sched_setattr", "rt_sigaction", "rt_sigprocmask", "capget",
                           "capset",    "stat",      "newfstatat",    "faccessat",    "faccessat2",     "brk",
                           "mmap",      "munmap",    "futex",         "execve",       "exit",           "exit_group"};
const Words kWait = {"fcntl", "dup2", "dup3", "accept", "accept4"};
const Words kHooks = {"set_robust_list", "memfd_create", "lseek", "pipe2",  "fcntl",         "dup2",  "dup3",
                      "pidfd_open",      "read",         "kill",  "waitid", "clock_gettime", "wait4", "getpid",
                      "gettid"};
const Words kProbe = {"arch_prctl",      "set_tid_address", "set_robust_list", "rseq",  "mprotect",
                      "readlink",        "getrandom",       "fstat",           "read",  "readlinkat",
                      "rt_sigtimedwait", "rt_sigsuspend",   "pause",           "lseek", "uname"};

// Nothing else can be called under it.
void allow_only(Bundle& bundle, std::initializer_list<Words> lists, const std::string& without) {
    Words allowed;
    for (const Words& list : lists) allowed.insert(allowed.end(), list.begin(), list.end());
    std::erase(allowed, without);
    allowed.insert(allowed.end(), kProbe.begin(), kProbe.end());
    bundle.config["process"]["noNewPrivileges"] = false;
    bundle.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_KILL_PROCESS"},
                                         {"syscalls", {{{"names", allowed}, {"action", "SCMP_ACT_ALLOW"}}}}};
}

}  // namespace

TEST_CASE("entry: a filter that allows the end of a start is loaded before a wait, and one that does not, after") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    // Without execveat there is no trampoline to wait in; but with no_new_privs the filter can wait for that.
    for (const bool no_new_privileges : {false, true}) {
        for (const char* without : {"", "execveat", "accept4"}) {
            CAPTURE(no_new_privileges);
            CAPTURE(without);
            Bundle bundle;
            allow_only(bundle, {kEndOfStart, kWait, {"execveat"}}, without);
            bundle.config["process"]["noNewPrivileges"] = no_new_privileges;
            bundle.probe({"exit", "0"});
            const Container container(bundle, As::created);
            const std::string status = read_text("/proc/" + std::to_string(container.pid()) + "/status");
            const std::string call = without;
            CHECK((status.find("Seccomp:\t2") != status.npos) ==
                  (call.empty() || (call == "execveat" && !no_new_privileges)));
            CHECK((status.find("NoNewPrivs:\t1") != status.npos) == no_new_privileges);
            container.must({"start", bundle.id()});
            container.await_end();
        }
    }
}

// A hook is a program of the image, and a setuid file of the image would give it what the payload cannot have.
TEST_CASE("entry: a hook inside is restricted as the payload is") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    add_filter(bundle, true);
    bundle.config["annotations"] = {{"org.pinfold.landlock", "true"}};
    for (const char* set : {"bounding", "effective", "permitted"})
        bundle.config["process"]["capabilities"][set] = {"CAP_SYS_ADMIN"};
    const auto told_by_hook = [&](const Words& args) {
        json hook = {{"path", "/probe"}, {"args", args}};
        for (const char* word : {";", "exit", "7"}) hook["args"].push_back(word);
        bundle.config["hooks"]["startContainer"] = json::array({hook});
        bundle.probe({"exit", "0"});
        return run(bundle).err;
    };
    const std::string status = told_by_hook({"probe", "read", "/proc/self/status"});
    WITHSTANDS("no new privileges: " + status, status.find("NoNewPrivs:\\u00091") != status.npos);
    WITHSTANDS("the filter", status.find("Seccomp:\\u00092") != status.npos);
    const std::string mounted = told_by_hook({"probe", "mount", "none", "/tmp", "tmpfs"});
    WITHSTANDS("Landlock: " + mounted, mounted.find("EPERM") != mounted.npos);
}

TEST_CASE("entry: a filter that allows the end of a start is loaded before hooks, and one that does not, after") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* without : {"", "memfd_create"}) {
        Bundle bundle;
        allow_only(bundle, {kEndOfStart, kHooks}, without);
        bundle.config["hooks"]["startContainer"] = {
            {{"path", "/probe"}, {"args", {"probe", "exit", "0"}}, {"timeout", 60}}};
        bundle.probe({"exit", "3"});
        bundle.write_config();
        std::vector<std::string> words = bundle.verb({"run", "--bundle", bundle.path(), bundle.id()});
        words.insert(words.begin() + 1, "--debug");
        const Ended ended = run_program(words, caller());
        CHECK_MESSAGE(ended.status == 3, ended.err);
        const size_t rights = ended.err.rfind("] waiting rights\n");
        CHECK_MESSAGE((ended.err.rfind("] seccomp\n") < rights) == std::string(without).empty(), ended.err);
    }
}

TEST_CASE("entry: a filter that allows the end of an exec is loaded before that, and one that does not, after") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    enum Filter { all, without_one, answers_itself };
    for (const Filter filter : {all, without_one, answers_itself}) {
        Bundle bundle;
        allow_only(bundle, {kEndOfStart},
                   filter == without_one      ? "recvmsg"
                   : filter == answers_itself ? "close_range"
                                              : "");
        // What is to be closed would stay open.
        if (filter == answers_itself)
            bundle.config["linux"]["seccomp"]["syscalls"].push_back(
                {{"names", {"close_range"}},
                 {"action", "SCMP_ACT_ERRNO"},
                 {"errnoRet", 0},
                 {"args", {{{"index", 1}, {"value", 0}, {"op", "SCMP_CMP_NE"}}}}});
        if (filter == answers_itself)
            bundle.config["linux"]["seccomp"]["syscalls"].push_back(
                {{"names", {"close_range"}},
                 {"action", "SCMP_ACT_ALLOW"},
                 {"args", {{{"index", 1}, {"value", 0}, {"op", "SCMP_CMP_EQ"}}}}});
        bundle.probe({"wait-signal"});
        const Container container(bundle, As::running);
        std::vector<std::string> words = bundle.verb({"exec", bundle.id(), "/probe", "exit", "3"});
        words.insert(words.begin() + 1, "--debug");
        const Ended ended = run_program(words, caller());
        CHECK_MESSAGE(ended.status == 3, ended.err);
        const size_t rights = ended.err.rfind("] user\n");
        const bool outside = ended.err.find("] seccomp\n", rights) < ended.err.find("] clone\n", rights);
        CHECK_MESSAGE(outside == (filter == all), ended.err);
    }
}

TEST_CASE("entry: exec with a terminal brings nothing of the host's in") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    const DescriptorSocket socket(bundle.host() / "console");
    const json answer = seen_from_inside(bundle, {}, [&](const Container& container) {
        const Ended ended =
            container.exec({"--tty", "--console-socket", socket.path()}, {"/probe", "exit", "0"}, caller());
        CHECK(socket.receive());
        return ended;
    });
    CHECK(answer["met"] > 0);
    check_unseen("exec --tty", answer);
}

TEST_CASE("entry: exec brings nothing of the host's in, as root of a user namespace sees it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        INFO(std::string(rootless ? "a normal user's" : "root's"));
        Bundle bundle;
        may_trace(bundle);
        RunOptions options;
        if (rootless) {
            bundle.make_rootless(kNobodySpecial);
            options.spawn.uid = kNobodySpecial;
        } else {
            map_ids(bundle);
        }
        const json answer = seen_from_inside(bundle, options, [&](const Container& container) {
            return container.exec({}, {"/probe", "exit", "0"}, caller(options.spawn));
        });
        CHECK(answer["met"] > 0);
        check_unseen(rootless ? "exec, rootless" : "exec, user namespace", answer);
    }
}

namespace {

// One more container, in the pid namespace of the first, and in its user namespace where it has one of its own.
class Neighbour {
public:
    explicit Neighbour(const Container& first, bool mapped = false) {
        const std::string proc = "/proc/" + std::to_string(first.pid()) + "/ns/";
        bundle_.add_namespace("pid", proc + "pid");
        if (mapped) bundle_.add_namespace("user", proc + "user");
        // What is run by pinfold, or left waiting, has no more rights than the first container either.
        may_trace(bundle_);
        bundle_.probe({"exit", "0"});
    }

    Bundle& bundle() { return bundle_; }
    Ended run() { return run_program(line({"run", "--bundle", bundle_.path(), bundle_.id()}), caller()); }
    Ended create_and_start() {
        const std::string pid_file = bundle_.host() / "pid";
        const Words create = {"create", "--bundle", bundle_.path(), "--pid-file", pid_file, bundle_.id()};
        Ended ended = run_program(line(create), caller());
        if (ended.status == 0) ended = run_program(line({"start", bundle_.id()}), caller());
        const Ended deleted = run_program(line({"delete", "--force", bundle_.id()}), caller());
        // Orphaned, it is our child, and the first container cannot end before it is reaped.
        if (const std::string pid = read_text(pid_file); !pid.empty()) ::waitpid(std::stoi(pid), nullptr, __WALL);
        return ended.status == 0 ? deleted : ended;
    }

private:
    std::vector<std::string> line(const std::vector<std::string>& words) const {
        bundle_.write_config();
        return bundle_.verb(words);
    }

    Bundle bundle_;
};

void add_hooks(Bundle& bundle) {
    const json on_host = json::array({{{"path", "/bin/true"}}});
    bundle.config["hooks"] = {{"prestart", on_host}, {"createRuntime", on_host}, {"createContainer", on_host}};
    bundle.config["hooks"]["startContainer"] = {{{"path", "/probe"}, {"args", {"probe", "exit", "0"}}}};
}

}  // namespace

Words reach_first(const Vault& vault) {
    return {"/probe", "reach-first", vault.secret(), kWord, host_root(), host_namespaces()};
}

json answer_in(const std::string& text) {
    const size_t begin = text.find("{\"ok\"");
    REQUIRE_MESSAGE(begin != std::string::npos, text);
    return json::parse(text.substr(begin, text.find('}', begin) + 1 - begin));
}

// It fails in the end, so that its words are told.
Ended run_with_hook(Bundle& bundle, const Vault& vault, bool in_two) {
    json hook = {{"path", "/probe"}, {"args", reach_first(vault)}};
    for (const char* word : {";", "exit", "7"}) hook["args"].push_back(word);
    bundle.config["hooks"]["startContainer"] = json::array({hook});
    bundle.write_config();
    const Ended first =
        run_program(bundle.verb({in_two ? "create" : "run", "--bundle", bundle.path(), bundle.id()}), caller());
    return in_two && first.status == 0 ? run_program(bundle.verb({"start", bundle.id()}), caller()) : first;
}

TEST_CASE("entry: a hook inside, which may trace, has nothing of the process that runs it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool in_two : {false, true}) {
        for (const char* denied : {"", "swapon", "memfd_create"}) {
            INFO(in_two, std::string(denied));
            Bundle bundle;
            may_trace(bundle);
            if (*denied != 0) add_filter(bundle, false, denied);
            const Vault vault(bundle);
            const json answer = answer_in(run_with_hook(bundle, vault, in_two).err);
            CHECK(answer["met"] == 1);
            // To load the filter late takes a right. It can be seen in /proc, but not be taken.
            const bool late = std::string(denied) == "memfd_create";
            const json seen = late ? json::array({"capabilities"}) : json::array();
            WITHSTANDS("a hook: " + answer.dump(), answer["reached"] == seen);
        }
    }
}

TEST_CASE("entry: what waits for its start has no more rights than an exec into it, or there is none") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    enum Filter { none, early, late, without_new_privileges };
    for (const Filter filter : {none, early, late, without_new_privileges}) {
        INFO(int(filter));
        Bundle bundle;
        may_trace(bundle);
        if (filter != none) add_filter(bundle, filter == without_new_privileges, filter == late ? "accept4" : "swapon");
        const Vault vault(bundle);
        const Container container(bundle, As::created, {.spawn = caller()});
        const Ended ended = container.exec({}, reach_first(vault), caller());
        if (filter == late) {
            WITHSTANDS("refused: " + ended.err,
                       ended.status == 255 && ended.err.find("CAP_SYS_PTRACE") != ended.err.npos);
            continue;
        }
        const json answer = answer_in(ended.out);
        CHECK(answer["met"] == 1);
        check_unseen("a created container", answer);
    }
}

TEST_CASE("entry: a container that joins a pid namespace brings nothing of the host's in") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool hooks : {false, true}) {
        for (const bool in_two : {false, true}) {
            Bundle bundle;
            may_trace(bundle);
            std::optional<Neighbour> neighbour;
            const json answer = seen_from_inside(bundle, {}, [&](const Container& container) {
                if (!neighbour) neighbour.emplace(container);
                if (hooks) add_hooks(neighbour->bundle());
                add_filter(neighbour->bundle(), false);
                return in_two ? neighbour->create_and_start() : neighbour->run();
            });
            CHECK(answer["met"] > 0);
            check_unseen(std::string(in_two ? "create and start" : "run") + (hooks ? ", hooks" : ""), answer);
        }
    }
}

TEST_CASE("entry: a container that joins a pid namespace and would keep a right there is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"wait-signal"});
    std::optional<Neighbour> neighbour;
    const Container container(bundle, As::running);
    neighbour.emplace(container);
    for (const bool no_new_privileges : {false, true}) {
        add_filter(neighbour->bundle(), no_new_privileges, "recvmsg");
        const Ended ended = neighbour->run();
        const bool refused = ended.status != 0 && ended.err.find("the pid namespace that is joined") != ended.err.npos;
        WITHSTANDS("a right that is kept: " + ended.err,
                   refused != no_new_privileges && (refused || ended.status == 0));
    }
}

TEST_CASE("entry: a container that joins a pid and a user namespace brings nothing of the host's in") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    map_ids(bundle);
    std::optional<Neighbour> neighbour;
    const json answer = seen_from_inside(bundle, {}, [&](const Container& container) {
        if (!neighbour) neighbour.emplace(container, true).bundle().config["linux"].erase("resources");
        return neighbour->run();
    });
    CHECK(answer["met"] > 0);
    check_unseen("run, user namespace", answer);
}

TEST_CASE("entry: a joined pid namespace is the one that proc shows, also on kernels without an option for it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool refused : {false, true}) {
        INFO("option refused: ", refused);
        Bundle bundle;
        may_trace(bundle);
        std::optional<Neighbour> neighbour;
        const json answer = seen_from_inside(bundle, {}, [&](const Container& container) {
            if (!neighbour) {
                neighbour.emplace(container);
                json& mounts = neighbour->bundle().config["mounts"];
                mounts.insert(mounts.begin(), json{{"destination", "/data"}, {"type", "tmpfs"}, {"source", "tmpfs"}});
            }
            Bundle& other = neighbour->bundle();
            other.probe({"read", "/proc/1/comm"}).write_config();
            const fs::path trace = other.host() / "trace";
            std::vector<std::string> line = {"/usr/bin/strace",       "-f", "-qq", "-o", trace, "-e",
                                             "trace=fsconfig,unshare"};
            // The fourth is that of the namespace, in the process that makes the mounts: two are for the tmpfs, one for
            // the source of proc. No other process comes as far.
            if (refused) line.insert(line.end(), {"-e", "inject=fsconfig:error=EINVAL:when=4"});
            const std::vector<std::string> run = other.verb({"run", "--bundle", other.path(), other.id()});
            line.insert(line.end(), run.begin(), run.end());
            const Ended ended = run_program(line, caller({.env = {"ASAN_OPTIONS=detect_leaks=0"}}));
            CHECK_MESSAGE(ended.out.find("probe") != std::string::npos, ended.out);
            const bool goes_there = read_text(trace).find("unshare(CLONE_NEWNS)") != std::string::npos;
            if (refused) CHECK(goes_there);
            return ended;
        });
        // Who goes there to mount it has the right to that.
        const json unavoidable = refused ? json::array({"capabilities"}) : json::array();
        const bool nothing = answer["reached"] == json::array() || answer["reached"] == unavoidable;
        WITHSTANDS("proc: " + answer.dump(), nothing);
    }
}

TEST_CASE("entry: exec into a sandbox brings nothing of the host's in, with a deadline or without") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        INFO(std::string(rootless ? "a normal user's" : "root's"));
        Bundle bundle;
        const Vault vault(bundle);
        const SpawnOptions spawn = caller(rootless ? normal_user(bundle) : SpawnOptions{});
        const std::string probe = (bundle.rootfs() / "probe").string() + ":/probe";
        const Ended made =
            run_program(bundle.verb({"sandbox", "--detach", "--name", bundle.id(), "--ro-bind", probe}), spawn);
        REQUIRE_MESSAGE(made.status == 0, made.err);
        Process watcher(bundle.verb({"exec", bundle.id(), "/probe", "reach", vault.secret(), kWord, host_root(),
                                     host_namespaces()}),
                        spawn);
        CHECK(watcher.read_line() == "READY");
        for (Rounds rounds(200); rounds.go_on();) {
            for (const std::vector<std::string>& options : {std::vector<std::string>{}, {"--timeout", "60s"}}) {
                std::vector<std::string> words = {"exec"};
                words.insert(words.end(), options.begin(), options.end());
                words.insert(words.end(), {bundle.id(), "/probe", "exit", "0"});
                const Ended ended = run_program(bundle.verb(words), spawn);
                CHECK_MESSAGE(ended.status == 0, ended.err);
            }
        }
        watcher.signal(SIGTERM);
        const Ended watched = watcher.finish();
        const json answer = json::parse(watched.out.substr(watched.out.find('{')));
        CHECK(answer["met"] > 0);
        check_unseen("exec into a sandbox", answer);
        CHECK(run_program(bundle.verb({"delete", "--force", bundle.id()}), spawn).status == 0);
    }
}

TEST_CASE("entry: cp is not seen inside at all") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    bundle.mount("/data", "tmpfs", "tmpfs", {"mode=777"});
    write_text(bundle.host() / "file", "text");
    const json answer = seen_from_inside(bundle, {}, [&](const Container&) {
        const Ended in = cp(bundle, {bundle.host() / "file", inside(bundle, "/data/file")}, caller());
        return in.status != 0 ? in : cp(bundle, {inside(bundle, "/data/file"), bundle.host() / "back"}, caller());
    });
    WITHSTANDS("cp: " + answer.dump(), answer["met"] == 0 && answer["reached"] == json::array());
}

}  // namespace pinfold::integration
