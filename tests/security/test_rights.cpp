// Nothing that a container's user controls is parsed or executed by pinfold with more rights than the container has.
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <sstream>

#include "attacks.hpp"
#include "cp.hpp"

namespace pinfold::integration {

namespace {

constexpr const char* kPasswd = "root:x:0:0::/root-home:/bin/sh\nbob:x:1001:1002::/home/bob:/bin/sh\n";

// The calls that are made in the container's root, until there is the payload.
std::vector<std::string> calls_inside(const std::string& trace, const std::string& entered) {
    std::vector<std::string> calls;
    bool inside = false;
    std::istringstream lines(trace);
    for (std::string line; std::getline(lines, line);) {
        const std::string call = line.substr(0, line.find('('));
        if (inside) calls.push_back(line);
        if (line.starts_with(entered) && line.ends_with("= 0")) inside = true;
        if (inside && call == "execve") break;
    }
    return calls;
}

struct Seen {
    std::set<std::string> read;         // paths that were opened for more than a look at their place
    std::set<std::string> with_rights;  // of these, while a capability was in effect
    std::set<std::string> executed;
    std::string user;  // of the last change
};

std::string quoted_part(const std::string& call) {
    const size_t begin = call.find('"') + 1;
    return call.substr(begin, call.find('"', begin) - begin);
}

Seen look_at_calls(const std::vector<std::string>& calls) {
    Seen seen;
    bool rights = true;
    for (const std::string& call : calls) {
        if (call.starts_with("capset(")) rights = call.find("effective=0,") == std::string::npos;
        if (call.starts_with("execve(")) seen.executed.insert(quoted_part(call));
        if (!call.starts_with("open") || call.find("O_PATH") != std::string::npos) continue;
        seen.read.insert(quoted_part(call));
        if (rights) seen.with_rights.insert(quoted_part(call));
    }
    return seen;
}

std::string trace_with(const fs::path& directory, const std::string& call) {
    for (const auto& entry : fs::directory_iterator(directory)) {
        const std::string text = read_text(entry.path());
        if (text.find("\n" + call) != std::string::npos) return text;
    }
    FAIL("no process calls ", call);
    return {};
}

// One file for each process. The one that enters becomes the payload, or clones the one that does.
std::string trace_to_payload(const fs::path& directory, const std::string& entered) {
    const std::string entering = trace_with(directory, entered);
    const std::string payload = trace_with(directory, "execve(\"/probe\"");
    return entering == payload ? payload : entering + payload;
}

Seen trace(const Bundle& bundle, const std::vector<std::string>& words, const std::string& entered) {
    const fs::path directory = bundle.host() / "trace";
    fs::remove_all(directory);
    fs::create_directories(directory);
    std::vector<std::string> line = {"/usr/bin/strace", "-ff", "-qq", "-o", directory / "t"};
    const std::vector<std::string> command = bundle.verb(words);
    line.insert(line.end(), command.begin(), command.end());
    const Ended ended = run_program(line, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    return look_at_calls(calls_inside(trace_to_payload(directory, entered), entered));
}

// Readable for no one without a capability, but the user that the container's root is not.
void close_to_root(const fs::path& file) {
    fs::permissions(file, fs::perms(0600));
    REQUIRE(::chown(file.c_str(), 4242, 4242) == 0);
}

}  // namespace

TEST_CASE("rights: run opens and executes nothing of the image but what is documented, with no capability in effect") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.rootfs() / "etc/passwd", kPasswd);
    bundle.probe({"exit", "0"}).write_config();
    const Seen seen = trace(bundle, {"run", "--bundle", bundle.path(), bundle.id()}, "chroot(");
    WITHSTANDS("files that run reads", seen.read == std::set<std::string>{"/etc/passwd"});
    WITHSTANDS("files that run reads with rights", seen.with_rights.empty());
    WITHSTANDS("programs that run executes", seen.executed == std::set<std::string>{"/probe"});
}

TEST_CASE("rights: exec opens and executes nothing inside but what is documented, with no capability in effect") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.rootfs() / "etc/passwd", kPasswd);
    const Container container(waiting(bundle), Container::As::running);
    const std::set<std::string> files = {"/etc/passwd", "/etc/group"};
    for (const std::string user : {"bob", "bob:7", "1001", "0"}) {
        INFO("exec --user ", user);
        const Seen seen = trace(bundle, {"exec", "--user", user, bundle.id(), "/probe", "exit", "0"}, "setns(");
        WITHSTANDS("files that exec reads", seen.read == files);
        WITHSTANDS("files that exec reads with rights", seen.with_rights.empty());
        WITHSTANDS("programs that exec executes", seen.executed == std::set<std::string>{"/probe"});
    }
}

TEST_CASE("rights: a file of users that the container's root cannot read is not read for it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    for (const char* name : {"etc/passwd", "etc/group"}) {
        write_text(bundle.rootfs() / name, name == std::string("etc/group") ? "staff:x:50:bob\n" : kPasswd);
        close_to_root(bundle.rootfs() / name);
    }
    const auto home_in = [](const json& report) { return has(report["env"], "HOME=/root-home"); };
    WITHSTANDS("run", !home_in(report_of(bundle)));
    const Container container(waiting(bundle), Container::As::running);
    WITHSTANDS("exec", !home_in(container.exec_report()));
    const Ended bob = container.exec({"--user", "bob"}, {"/probe", "report"});
    WITHSTANDS("exec --user", is_refused(bob, "user 'bob' is not in the container's /etc/passwd"));
    const Ended staff = container.exec({"--user", "7:staff"}, {"/probe", "report"});
    WITHSTANDS("exec --user with a group", is_refused(staff, "group 'staff' is not in the container's /etc/group"));
}

TEST_CASE("rights: files of users that are something else neither block nor tell") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const std::string& target : {std::string("/proc/kmsg"), std::string("/dev/zero"), std::string("/dev/tty"),
                                      std::string("/proc/self/mem"), std::string("/proc/1/environ"), std::string("/"),
                                      std::string("passwd"), std::string("FIFO"), std::string("LONG")}) {
        Bundle bundle;
        INFO("etc/passwd is ", target);
        const fs::path file = bundle.rootfs() / "etc/passwd";
        if (target == "FIFO") REQUIRE(::mkfifo(file.c_str(), 0666) == 0);
        else if (target == "LONG") write_text(file, std::string(3 << 20, ':') + "\nbob:x:0:0::/:/sh\n");
        else plant(file, target);
        const json report = report_of(bundle);
        WITHSTANDS("run", has(report["env"], "HOME=/"));
        const Container container(waiting(bundle), Container::As::running);
        const Ended ended = container.exec({"--user", "bob"}, {"/probe", "report"});
        WITHSTANDS("exec --user", is_refused(ended, "the container's /etc/passwd"));
    }
}

}  // namespace pinfold::integration
