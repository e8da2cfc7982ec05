// Seccomp filters by their effects: each action, argument comparisons, unknown names.
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <sstream>

#include "harness.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

json rule(const std::vector<std::string>& names, const std::string& action) {
    return {{"names", names}, {"action", action}};
}

json arg(int index, uint64_t value, const std::string& op, uint64_t second = 0) {
    return {{"index", index}, {"value", value}, {"valueTwo", second}, {"op", op}};
}

void filter(Bundle& bundle, const json& rules, const std::string& otherwise = "SCMP_ACT_ALLOW") {
    bundle.config["linux"]["seccomp"] = {
        {"defaultAction", otherwise}, {"architectures", {"SCMP_ARCH_X86_64"}}, {"syscalls", rules}};
}

Command call(long number, uint64_t first = 0, uint64_t second = 0) {
    return {"syscall", std::to_string(number), std::to_string(first), std::to_string(second)};
}

// The program behind listenerPath: decides on one call of the container.
void answer(const UniqueFd& listener, int expected_call, const seccomp_notif_resp& decision) {
    REQUIRE(await_readable(listener.get()));
    seccomp_notif asked{};
    REQUIRE(::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0);
    CHECK(asked.data.nr == expected_call);
    seccomp_notif_resp response = decision;
    response.id = asked.id;
    CHECK(::ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SEND, &response) == 0);
}

constexpr seccomp_notif_resp kRefuse{.id = 0, .val = 0, .error = -EXDEV, .flags = 0};
constexpr seccomp_notif_resp kContinue{.id = 0, .val = 0, .error = 0, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

void listen(Bundle& bundle, const DescriptorSocket& socket, const json& rules) {
    filter(bundle, rules);
    bundle.config["linux"]["seccomp"]["listenerPath"] = socket.path();
    bundle.config["linux"]["seccomp"]["listenerMetadata"] = "for \"me\"";
}

}  // namespace

TEST_CASE("seccomp: errno, with a number of one's own") {
    NEEDS_ROOT();
    Bundle bundle;
    json own = rule({"getpgrp"}, "SCMP_ACT_ERRNO");
    own["errnoRet"] = 110;  // ETIMEDOUT
    filter(bundle, json::array({rule({"getppid"}, "SCMP_ACT_ERRNO"), own}));
    const Outcome outcome =
        run_probe(bundle, {call(SYS_getppid), call(SYS_getpgrp), call(SYS_getpid), {"read", "/proc/self/status"}});
    CHECK(outcome.answer(0)["errno"] == "EPERM");
    CHECK(outcome.answer(1)["errno"] == "ETIMEDOUT");
    CHECK(outcome.answer(2)["ok"] == true);
    const std::string status = outcome.answer(3)["text"];
    CHECK(status.find("Seccomp:\t2\n") != std::string::npos);
    CHECK(status.find("Seccomp_filters:\t1\n") != std::string::npos);
}

TEST_CASE("seccomp: killing ends with 128 + SIGSYS") {
    NEEDS_ROOT();
    for (const std::string& action :
         std::vector<std::string>{"SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS", "SCMP_ACT_TRAP"}) {
        CAPTURE(action);
        Bundle bundle;
        filter(bundle, json::array({rule({"getppid"}, action)}));
        const Outcome outcome = run_probe(bundle, {call(SYS_getpid), call(SYS_getppid), call(SYS_getpid)});
        CHECK(outcome.status == 128 + SIGSYS);
        CHECK(outcome.answer(0)["ok"] == true);
        CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 1);
    }
}

TEST_CASE("seccomp: logging and tracing let a call pass or fail as documented") {
    NEEDS_ROOT();
    Bundle bundle;
    filter(bundle, json::array({rule({"getppid"}, "SCMP_ACT_LOG"), rule({"getpgrp"}, "SCMP_ACT_TRACE")}));
    const Outcome outcome = run_probe(bundle, {call(SYS_getppid), call(SYS_getpgrp)});
    CHECK(outcome.answer(0)["ok"] == true);
    CHECK(outcome.answer(1)["errno"] == "ENOSYS");  // nobody traces
}

TEST_CASE("seccomp: arguments are compared") {
    NEEDS_ROOT();
    Bundle bundle;
    struct Case {
        std::string op;
        uint64_t value, second;
        uint64_t hit, miss;
    };
    // One call per operator, none of which the payload or the runtime makes; by themselves they answer EBADF.
    const std::vector<std::pair<long, std::string>> calls = {
        {SYS_dup, "dup"},     {SYS_fsync, "fsync"},         {SYS_syncfs, "syncfs"}, {SYS_fdatasync, "fdatasync"},
        {SYS_flock, "flock"}, {SYS_ftruncate, "ftruncate"}, {SYS_fchmod, "fchmod"}};
    const std::vector<Case> cases = {
        {"SCMP_CMP_EQ", 700, 0, 700, 701},
        {"SCMP_CMP_NE", 700, 0, 701, 700},
        {"SCMP_CMP_LT", 700, 0, 699, 700},
        {"SCMP_CMP_LE", 700, 0, 700, 701},
        {"SCMP_CMP_GT", 700, 0, 701, 700},
        {"SCMP_CMP_GE", 700, 0, 700, 699},
        {"SCMP_CMP_MASKED_EQ", 0xff00, 0x0200, 0x02bc, 0x03bc},
    };
    json rules = json::array();
    std::vector<Command> commands;
    for (size_t i = 0; i < cases.size(); ++i) {
        json one = rule({calls[i].second}, "SCMP_ACT_ERRNO");
        one["errnoRet"] = 54;  // EXFULL
        one["args"] = json::array({arg(0, cases[i].value, cases[i].op, cases[i].second)});
        rules.push_back(one);
        commands.push_back(call(calls[i].first, cases[i].hit));
        commands.push_back(call(calls[i].first, cases[i].miss));
    }
    filter(bundle, rules);
    const Outcome outcome = run_probe(bundle, commands);
    for (size_t i = 0; i < cases.size(); ++i) {
        CAPTURE(cases[i].op);
        CHECK(outcome.answer(2 * i)["errno"] == "EXFULL");
        CHECK(outcome.answer(2 * i + 1)["errno"] != "EXFULL");
    }
}

TEST_CASE("seccomp: several conditions on one call must all hold") {
    NEEDS_ROOT();
    Bundle bundle;
    json both = rule({"dup3"}, "SCMP_ACT_ERRNO");
    both["args"] = json::array({arg(0, 700, "SCMP_CMP_EQ"), arg(1, 701, "SCMP_CMP_EQ")});
    both["errnoRet"] = 54;
    filter(bundle, json::array({both}));
    const Outcome outcome = run_probe(bundle, {call(SYS_dup3, 700, 701), call(SYS_dup3, 700, 702)});
    CHECK(outcome.answer(0)["errno"] == "EXFULL");
    CHECK(outcome.answer(1)["errno"] == "EBADF");
}

TEST_CASE("seccomp: the default action holds for what no rule names") {
    NEEDS_ROOT();
    Bundle bundle;
    // What a start takes after the filter is loaded, by any of the runtimes.
    std::istringstream words(
        "execve arch_prctl brk mmap munmap mprotect read write writev close exit exit_group fstat newfstatat "
        "set_tid_address set_robust_list rseq prlimit64 readlink readlinkat getrandom futex uname ioctl "
        "rt_sigreturn rt_sigprocmask rt_sigaction openat prctl capset capget close_range fcntl lseek getpid "
        "setresuid setresgid setgroups chdir fchdir getcwd epoll_pwait nanosleep sigaltstack gettid tgkill "
        "getdents64 statfs fstatfs epoll_ctl epoll_create1 pipe2 madvise sched_getaffinity sched_yield mlock "
        "faccessat faccessat2 umask dup3 recvmsg sendmsg sendto recvfrom poll ppoll clock_gettime unlinkat "
        "seccomp open stat epoll_wait timer_settime");
    const std::vector<std::string> needed(std::istream_iterator<std::string>(words), {});
    filter(bundle, json::array({rule(needed, "SCMP_ACT_ALLOW")}), "SCMP_ACT_ERRNO");
    const Outcome outcome = run_probe(bundle, {call(SYS_getpid), call(SYS_getppid)});
    CHECK(outcome.answer(0)["ok"] == true);
    CHECK(outcome.answer(1)["errno"] == "EPERM");

    bundle.config["linux"]["seccomp"]["defaultErrnoRet"] = 38;
    CHECK(run_probe(bundle, {call(SYS_getppid)}).answer()["errno"] == "ENOSYS");
}

TEST_CASE("seccomp: names that no kernel of this architecture knows are skipped, aloud with --debug") {
    NEEDS_ROOT();
    Bundle bundle;
    filter(bundle, json::array({rule({"no_such_call", "getppid"}, "SCMP_ACT_ERRNO")}));
    const Outcome outcome = run_probe(bundle, {call(SYS_getppid)}, {.global = {"--debug"}});
    CHECK(outcome.answer()["errno"] == "EPERM");
    if (runtime() == Runtime::pinfold) CHECK(outcome.says("no_such_call"));
}

TEST_CASE("seccomp: names that are not known are told each time, also where the filter was compiled before") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string denied = "seccomp: not known to libseccomp, and so not denied: no_such_call, nor_this";
    filter(bundle, json::array({rule({"no_such_call", "getppid", "nor_this"}, "SCMP_ACT_ERRNO")}));
    for (int i = 0; i < 2; ++i) CHECK(run_probe(bundle, {call(SYS_getppid)}).says(denied));
    const json all = json::parse(run_program({runtime_command()[0], "seccomp", "show", "default", "--json"}, {}).out);
    bundle.config["linux"]["seccomp"] = all;
    bundle.config["linux"]["seccomp"]["syscalls"].push_back(rule({"no_such_call"}, "SCMP_ACT_ALLOW"));
    const std::string left_out = "seccomp: not known to libseccomp, and left out: ";
    for (int i = 0; i < 2; ++i) {
        CHECK_FALSE(run_probe(bundle, {call(SYS_getppid)}).says(left_out));
        CHECK(run_probe(bundle, {call(SYS_getppid)}, {.global = {"--debug"}}).says(left_out));
    }
}

TEST_CASE("seccomp: conditions that the specification does not have are ignored, aloud") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    json denied = rule({"getppid"}, "SCMP_ACT_ERRNO");
    denied["includes"] = json::object();
    filter(bundle, json::array({denied}));
    CHECK_FALSE(run_probe(bundle, {call(SYS_getppid)}).says("specification"));
    bundle.config["linux"]["seccomp"]["syscalls"][0]["includes"]["caps"] = {"CAP_SYS_ADMIN"};
    const Outcome outcome = run_probe(bundle, {call(SYS_getppid)});
    CHECK(outcome.answer()["errno"] == "EPERM");
    CHECK(outcome.says("linux.seccomp.syscalls[0].includes: not of the runtime specification, and ignored"));
}

TEST_CASE("seccomp: a filter without no_new_privs, for a user without capabilities") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["noNewPrivileges"] = false;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    bundle.config["process"].erase("capabilities");
    filter(bundle, json::array({rule({"getppid"}, "SCMP_ACT_ERRNO")}));
    const Outcome outcome = run_probe(bundle, {call(SYS_getppid), {"report"}});
    CHECK(outcome.answer(0)["errno"] == "EPERM");
    CHECK(outcome.answer(1)["no_new_privs"] == 0);
}

TEST_CASE("seccomp: 32-bit calls are no way around the filter") {
    NEEDS_ROOT();
    Bundle bundle;
    filter(bundle, json::array({rule({"getppid"}, "SCMP_ACT_ERRNO")}));
    // The x32 number of getppid: another architecture to the filter, which kills or refuses it.
    const Outcome outcome = run_probe(bundle, {call(SYS_getppid | 0x40000000)});
    CHECK((outcome.status == 128 + SIGSYS || outcome.answer()["ok"] == false));
}

TEST_CASE("seccomp: a listener decides, and is told of whom") {
    NEEDS_ROOT();
    Bundle bundle;
    const DescriptorSocket socket(bundle.host() / "listener");
    listen(bundle, socket, json::array({rule({"getppid"}, "SCMP_ACT_NOTIFY")}));
    bundle.probe(call(SYS_getppid)).write_config();
    Process running(bundle.verb({"run", "--bundle", bundle.path().string(), bundle.id()}), {});
    std::string text;
    const UniqueFd listener = socket.receive(&text);
    answer(listener, SYS_getppid, kRefuse);
    const Ended ended = running.finish();
    CHECK(ended.status == 0);
    CHECK(json::parse(ended.out)["errno"] == "EXDEV");
    const json told = json::parse(text);
    CHECK(told["fds"] == json({"seccompFd"}));
    CHECK(told["metadata"] == "for \"me\"");
    CHECK(told["pid"].get<int>() > 1);
    CHECK(told["state"]["pid"] == told["pid"]);
    CHECK(told["state"]["id"] == bundle.id());
    CHECK(told["state"]["bundle"] == bundle.path().string());
    CHECK(told["ociVersion"] == told["state"]["ociVersion"]);
}

TEST_CASE("seccomp: a listener works where the filter forbids all that pinfold could say, and even its execve waits") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool no_new_privileges : {true, false}) {
        CAPTURE(no_new_privileges);
        Bundle bundle;
        bundle.config["process"]["noNewPrivileges"] = no_new_privileges;
        const DescriptorSocket socket(bundle.host() / "listener");
        listen(bundle, socket,
               json::array({rule({"execve"}, "SCMP_ACT_NOTIFY"),
                            rule({"sendmsg", "sendto", "recvmsg", "recvfrom", "poll", "ppoll", "read", "futex", "dup",
                                  "sched_yield", "nanosleep", "clock_nanosleep"},
                                 "SCMP_ACT_KILL_PROCESS")}));
        bundle.probe({"print", "arrived"}).write_config();
        Process running(bundle.verb({"run", "--bundle", bundle.path().string(), bundle.id()}), {});
        const UniqueFd listener = socket.receive();
        answer(listener, SYS_execve, kContinue);
        const Ended ended = running.finish();
        CHECK(ended.status == 0);
        CHECK(ended.err == "arrived\n");
    }
}

TEST_CASE("seccomp: who waits for its listener to be taken sleeps") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string path = bundle.host() / "busy", pid_file = bundle.host() / "waiting-pid";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto* name = reinterpret_cast<const sockaddr*>(&address);
    const UniqueFd server(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(server.get(), name, sizeof address) == 0);
    REQUIRE(::listen(server.get(), 0) == 0);
    const UniqueFd first(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(first.get(), name, sizeof address) == 0);  // the next one waits, and so does what it is for
    filter(bundle, json::array({rule({"getppid"}, "SCMP_ACT_NOTIFY")}));
    bundle.config["linux"]["seccomp"]["listenerPath"] = path;
    bundle.probe({"exit", "0"}).write_config();
    Process running(bundle.verb({"run", "--pid-file", pid_file, "--bundle", bundle.path().string(), bundle.id()}), {});
    const std::string status = "/proc/" + std::to_string(std::stoi(await_file(pid_file))) + "/status";
    const auto await_line = [&](const std::string& line) {
        const auto end = std::chrono::steady_clock::now() + patience();
        while (read_text(status).find(line) == std::string::npos) {
            if (std::chrono::steady_clock::now() > end) FAIL("not seen: " << line << "\n" << read_text(status));
        }
    };
    await_line("Seccomp:\t2");  // from here on there is nothing left to do but to wait
    await_line("State:\tS");
    ::close(::accept(server.get(), nullptr, nullptr));
    CHECK(running.finish().status != 125);
}

TEST_CASE("seccomp: start and exec each bring a listener") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const DescriptorSocket socket(bundle.host() / "listener");
    listen(bundle, socket, json::array({rule({"getppid"}, "SCMP_ACT_NOTIFY")}));
    const Container container(bundle.probe({"wait-signal"}), Container::As::created);
    Process starting(bundle.verb({"start", bundle.id()}), {});
    std::string of_start;
    const UniqueFd first = socket.receive(&of_start);
    CHECK(starting.finish().status == 0);
    CHECK(json::parse(of_start)["pid"] == container.pid());
    std::vector<std::string> words = {"exec", bundle.id(), "/probe"};
    const Command getppid = call(SYS_getppid);
    words.insert(words.end(), getppid.begin(), getppid.end());
    Process executing(bundle.verb(words), {});
    std::string of_exec;
    const UniqueFd second = socket.receive(&of_exec);
    answer(second, SYS_getppid, kRefuse);
    CHECK(json::parse(executing.finish().out)["errno"] == "EXDEV");
    CHECK(json::parse(of_exec)["pid"] != container.pid());
    CHECK(json::parse(of_exec)["state"]["status"] == "running");
}

TEST_CASE("seccomp: without a program behind listenerPath nothing starts and nothing stays") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    filter(bundle, json::array({rule({"getppid"}, "SCMP_ACT_NOTIFY")}));
    bundle.config["linux"]["seccomp"]["listenerPath"] = bundle.host() / "nobody";
    const Outcome outcome = run_probe(bundle, {{"print", "ran"}});
    CHECK(outcome.status == 1);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find("linux.seccomp.listenerPath: connect to the listener's socket") != std::string::npos);
    CHECK(run_program(bundle.verb({"state", bundle.id()}), {}).status == 1);
    CHECK(cgroups_named(bundle.id()).empty());
}

// It would go on with what lies behind its last call, or try for ever.
TEST_CASE("seccomp: a filter that answers execve itself starts nothing, and that is told") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const int answered : {0, EINTR, EPERM}) {
        CAPTURE(answered);
        Bundle bundle;
        json denied = rule({"execve"}, "SCMP_ACT_ERRNO");
        denied["errnoRet"] = answered;
        bundle.config["linux"]["seccomp"] = {{"defaultAction", "SCMP_ACT_ALLOW"}, {"syscalls", {denied}}};
        bundle.config["process"]["noNewPrivileges"] = true;
        bundle.probe({"print", "ran"});
        const Outcome ended = run(bundle);
        CHECK(ended.status == 1);
        CHECK_MESSAGE(ended.err.find("\"/probe\"") != std::string::npos, ended.err);
        const Container container(bundle, Container::As::created);
        CHECK(verb(bundle, {"start", bundle.id()}).status == 1);
    }
}
