// Landlock: a layer of its own, which holds where another one is missing.
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox.hpp"
#include "support/tried.hpp"

namespace pinfold::integration {

namespace {

int kernel_abi() { return static_cast<int>(std::max(0L, ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1))); }

constexpr int kTcp = 4;

// Says what becomes of a port.
std::string listen_on(int port) {
    return "use Socket; socket(S, PF_INET, SOCK_STREAM, 0); bind(S, sockaddr_in(" + std::to_string(port) +
           ", INADDR_LOOPBACK)) ? print 'bound' : print 0 + $!";
}

std::string connect_to(int port) {
    return "use Socket; socket(S, PF_INET, SOCK_STREAM, 0); connect(S, sockaddr_in(" + std::to_string(port) +
           ", INADDR_LOOPBACK)) ? print 'connected' : print 0 + $!";
}

const std::string kForbidden = std::to_string(EACCES);

std::string perl(const Bundle& bundle, std::vector<std::string> options, const std::string& script) {
    return run_job(bundle, {std::move(options), {"perl", "-e", script}, {}}).out;
}

// A root whose directory /open belongs to everybody, its mounts' read-only flags lost on the way.
Ended write_where_flags_are_lost(const Bundle& bundle, const std::vector<std::string>& options) {
    std::vector<std::string> line = {"/usr/bin/strace",
                                     "-f",
                                     "-qq",
                                     "-o",
                                     "/dev/null",
                                     "-e",
                                     "trace=mount_setattr",
                                     "-e",
                                     "inject=mount_setattr:retval=0"};
    const std::vector<std::string> job =
        bundle.verb({"sandbox", "--name", bundle.id(), "--no-strict", "--rootfs", bundle.rootfs()});
    line.insert(line.end(), job.begin(), job.end());
    line.insert(line.end(), options.begin(), options.end());
    line.insert(line.end(), {"--", "/probe", "create", "/open/file", "text"});
    return run_program(line);
}

}  // namespace

TEST_CASE("Landlock: a sandbox has it where the kernel does, and says so") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const int abi = kernel_abi();
    const Bundle bundle;
    const Judged with = judge_job(bundle, {{}, {"true"}, {}});
    CHECK(with.result["landlock"] == (abi > 0 ? json(abi) : json()));
    CHECK((with.err.find("Landlock is not in this kernel") != std::string::npos) == (abi == 0));
    CHECK(judge_job(bundle, {{"--no-landlock"}, {"true"}, {}}).result["landlock"] == json());
}

TEST_CASE("Landlock: what the sandbox needs to write stays writable") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    const char* script =
        "cd /tmp && echo a > a && mkdir d && mv a d/b && ln d/b c && ln -s c l && mkfifo p && rm -r d && : > c && "
        "echo b > /workspace/x && echo c > /dev/null && echo d > /dev/shm/y && echo e > /dev/stdout && cat /dev/zero | "
        "head -c 1 > /tmp/z && echo fine";
    CHECK(run_job(bundle, {{}, {"sh", "-ec", script}, {}}).out == "e\nfine\n");
}

TEST_CASE("Landlock: a file that cannot be told by its mount's flags is still not written to") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (kernel_abi() == 0) SKIP_TEST("this kernel has no Landlock");
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace");
    const Bundle bundle;
    fs::create_directory(bundle.rootfs() / "open");
    fs::permissions(bundle.rootfs() / "open", fs::perms::all);
    CHECK(write_where_flags_are_lost(bundle, {"--no-landlock"}).status == 0);
    const Ended held = write_where_flags_are_lost(bundle, {});
    CAPTURE(held.out);
    WITHSTANDS("write below a root that is not read-only", json::parse(held.out)["errno"] == "EACCES");
    WITHSTANDS("write to /proc", run_job(bundle, {{}, {"sh", "-c", "echo x > /proc/self/comm"}, {}}).status != 0);
    CHECK(run_job(bundle, {{"--no-landlock"}, {"sh", "-c", "echo x > /proc/self/comm"}, {}}).status == 0);
}

TEST_CASE("Landlock: in a bundle by annotation, with capabilities that would allow more, and in exec") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (kernel_abi() == 0) SKIP_TEST("this kernel has no Landlock");
    Bundle bundle;
    const json all = {"CAP_SYS_ADMIN", "CAP_MKNOD", "CAP_DAC_OVERRIDE"};
    bundle.config["process"]["capabilities"] = {{"bounding", all}, {"effective", all}, {"permitted", all}};
    bundle.config["root"]["readonly"] = false;
    bundle.config["linux"]["resources"]["devices"] = {{{"allow", true}, {"access", "rwm"}}};
    const std::vector<Command> attempts = {{"mount", "tmpfs", "/", "tmpfs"}, {"mknod", "/null", "c", "1", "3"}};
    const Outcome without = run_probe(bundle, attempts);
    CHECK(without.answer(0)["ok"] == true);
    CHECK(without.answer(1)["ok"] == true);
    fs::remove(bundle.rootfs() / "null");
    bundle.config["annotations"] = {{"org.pinfold.landlock", "true"}};
    const Outcome with = run_probe(bundle, attempts);
    WITHSTANDS("mount with CAP_SYS_ADMIN", with.answer(0)["ok"] == false);
    WITHSTANDS("mknod with CAP_MKNOD", with.answer(1)["ok"] == false);
    CHECK(report_of(bundle)["no_new_privs"] == 1);
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    const Ended mounted = container.exec({}, {"/probe", "mount", "tmpfs", "/", "tmpfs"});
    CAPTURE(mounted.err);
    WITHSTANDS("mount in exec", json::parse(mounted.out)["ok"] == false);
}

TEST_CASE("Landlock: TCP ports") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const Bundle bundle;
    if (kernel_abi() < kTcp) {
        check_refused(run_job(bundle, {{"--network", "host", "--tcp-connect", "443"}, {"true"}, {}}),
                      "this kernel cannot hold a process to ports", 125);
        const Ended warned = run_job(bundle, {{"--network", "host"}, {"true"}, {}});
        CHECK(warned.status == 0);
        if (kernel_abi() > 0) CHECK(warned.err.find("does not rule on TCP ports") != std::string::npos);
        return;
    }
    const std::vector<std::string> host = {"--network", "host"};
    WITHSTANDS("listen on the host", perl(bundle, host, listen_on(0)) == kForbidden);
    CHECK(perl(bundle, {"--network", "host", "--tcp-bind", "any"}, listen_on(0)) == "bound");
    CHECK(perl(bundle, {"--network", "host", "--tcp-bind", "0"}, listen_on(0)) == "bound");
    const std::vector<std::string> one = {"--network", "host", "--tcp-connect", "1"};
    CHECK(perl(bundle, one, connect_to(1)) != kForbidden);
    WITHSTANDS("connect to another port", perl(bundle, one, connect_to(2)) == kForbidden);
    check_refused(run_job(bundle, {{"--tcp-connect", "http"}, {"true"}, {}}), "expected ports as in 80,443", 125);
    check_refused(run_job(bundle, {{"--no-landlock", "--tcp-bind", "none"}, {"true"}, {}}), "take Landlock", 125);
}

TEST_CASE("Landlock: the host's abstract sockets, on the host's network") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    constexpr int kScopes = 6;
    const Bundle bundle;
    const bool is_told =
        run_job(bundle, {{"--network", "host"}, {"true"}, {}}).err.find("within reach") != std::string::npos;
    CHECK(is_told == (kernel_abi() > 0 && kernel_abi() < kScopes));
    if (kernel_abi() < kScopes) return;
    const std::string name = "pinfold-" + bundle.id();
    const std::string address = "pack('Sa*', AF_UNIX, qq(\\0" + name + "))";
    Process listener({"/usr/bin/perl", "-e",
                      "use Socket; $| = 1; socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, " + address +
                          ") && listen(S, 5) && print qq(on\\n); sleep 1000"},
                     SpawnOptions{});
    REQUIRE(listener.read_line() == "on");
    const std::string script =
        "use Socket; socket(S, PF_UNIX, SOCK_STREAM, 0); print connect(S, " + address + ") ? 'connected' : 'held';";
    CHECK(perl(bundle, {"--network", "host", "--no-landlock"}, script) == "connected");
    WITHSTANDS("an abstract socket of the host", perl(bundle, {"--network", "host"}, script) == "held");
    listener.signal(SIGKILL);
    listener.finish();
}

}  // namespace pinfold::integration
