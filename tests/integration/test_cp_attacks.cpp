// cp against a container that plants links for those who read the copy, and looks for the process that copies; and
// against SIGKILL at a bad moment.
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/strings.hpp"
#include "cp.hpp"

using namespace pinfold::integration;

namespace {

using As = Container::As;

// cp from standard input, held in the middle: when as much has been taken as this, its process in the container works.
class HeldCopy {
public:
    HeldCopy(const Bundle& bundle, const std::string& target, const SpawnOptions& spawn = {}) {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        const UniqueFd input(ends[0]);
        feed_ = UniqueFd(ends[1]);
        SpawnOptions options = spawn;
        options.fds.push_back({0, input.get()});
        copying_ = std::make_unique<Process>(bundle.verb({"cp", "-", inside(bundle, target)}), options);
        const std::string much(1'000'000, 'x');  // more than pipe and socket hold
        REQUIRE(::write(feed_.get(), much.data(), much.size()) == ssize_t(much.size()));
        const std::string pid = std::to_string(copying_->pid());
        helper_ = static_cast<pid_t>(std::stol(read_text("/proc/" + pid + "/task/" + pid + "/children")));
        pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, helper_, 0)));
    }

    fs::path helper() const { return fs::path("/proc") / std::to_string(helper_); }
    bool helper_ends() const { return await_readable(pidfd_.get()); }
    void kill() { copying_->signal(SIGKILL); }
    Ended finish() {
        feed_.reset();
        return copying_->finish();
    }

private:
    UniqueFd feed_;
    std::unique_ptr<Process> copying_;
    pid_t helper_ = 0;
    UniqueFd pidfd_;
};

// "1000 1000 1000 1000" of "Uid:\t1000\t1000...".
std::string status_line(const fs::path& proc, const std::string& key) {
    std::istringstream lines(read_text(proc / "status"));
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with(key + ":")) continue;
        std::istringstream words(line.substr(key.size() + 1));
        std::string out;
        for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
        return out;
    }
    return "missing";
}

// pinfold itself under strace, not its process in the container.
Ended cp_traced(const Bundle& bundle, const std::vector<std::string>& options, const std::vector<std::string>& words) {
    std::vector<std::string> line = {"/usr/bin/strace", "-o", bundle.host() / "trace"};
    line.insert(line.end(), options.begin(), options.end());
    std::vector<std::string> command = words;
    command.insert(command.begin(), "cp");
    command = bundle.verb(command);
    line.insert(line.end(), command.begin(), command.end());
    return run_program(line, {.env = {"ASAN_OPTIONS=detect_leaks=0"}});
}

std::vector<std::string> names_in(const fs::path& directory) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

TEST_CASE("cp attacks: links that would lead a reader of the copy astray stay inside") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const fs::path tree = bundle.rootfs() / "data/tree";
    fs::create_directories(tree / "sub/below");
    struct Link {
        std::string name;
        std::string target;
        bool allowed;
    };
    const Link links[] = {
        {"link", "sub", true},
        {"link", "./sub/below/", true},
        {"link", ".", true},

        {"link", "..", false},
        {"link", "/etc/passwd", false},
        {"link", "../tree/sub", false},
        {"link", "sub/..", false},
        {"link", "sub/../../x", false},
        {"sub/link", "..", true},
        {"sub/link", "../sub/below", true},
        {"sub/link", "../..", false},
        {"sub/link", ".././..", false},
        {"sub/below/link", "../../x", true},
        {"sub/below/link", "../../../x", false},
    };
    for (const Link& link : links) {
        CAPTURE(link.name);
        CAPTURE(link.target);
        fs::create_symlink(link.target, tree / link.name);
        const Ended ended = cp(bundle, {inside(bundle, "/data/tree"), bundle.host() / "out"});
        if (link.allowed) check_copied(ended);
        else check_refused(ended, "link': the link leads out of the copied tree, to '" + link.target + "'\nhint: ");
        CHECK(fs::is_symlink(bundle.host() / "out" / link.name) == link.allowed);
        CHECK(fs::exists(bundle.host() / "out") == link.allowed);
        fs::remove_all(bundle.host() / "out");
        check_copied(cp(bundle, {"--outward-links", inside(bundle, "/data/tree"), bundle.host() / "out"}));
        CHECK(fs::read_symlink(bundle.host() / "out" / link.name) == link.target);
        fs::remove_all(bundle.host() / "out");
        fs::remove(tree / link.name);
    }
}

TEST_CASE("cp attacks: no more rights than the payload's user, not even its capabilities") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const uid_t uid : {0U, 1000U}) {
        CAPTURE(uid);
        Bundle bundle;
        bundle.config["process"]["user"] = {{"uid", uid}, {"gid", uid}};
        for (const char* set : {"bounding", "effective", "permitted"}) {
            bundle.config["process"]["capabilities"][set] = {"CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_CHOWN"};
        }
        const fs::path closed = bundle.rootfs() / "data/closed";
        fs::create_directories(closed);
        write_text(closed / "file", "of another user");
        fs::permissions(closed / "file", fs::perms(0600));
        REQUIRE(::chown((closed / "file").c_str(), 4242, 4242) == 0);
        REQUIRE(::chown(closed.c_str(), 4242, 4242) == 0);
        const Container container(waiting(bundle), As::running);
        write_text(bundle.host() / "file", "new");
        check_refused(cp(bundle, {inside(bundle, "/data/closed/file"), "-"}), "access denied (EACCES)");
        check_refused(cp(bundle, {bundle.host() / "file", inside(bundle, "/data/closed/new")}),
                      "access denied (EACCES)");
        check_refused(cp(bundle, {bundle.host() / "file", inside(bundle, "/data/closed/file")}), "access denied");
        CHECK(names_in(closed) == std::vector<std::string>{"file"});
    }
}

TEST_CASE("cp attacks: a lease on a file holds up neither cp nor a start with tmpcopyup") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/leased", "x");
    const UniqueFd leased(::open((bundle.rootfs() / "data/leased").c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::fcntl(leased.get(), F_SETSIG, SIGURG) == 0);  // for the holder, who does nothing about it
    REQUIRE(::fcntl(leased.get(), F_SETLEASE, F_WRLCK) == 0);
    {
        const Container container(waiting(bundle), As::running);
        check_refused(cp(bundle, {inside(bundle, "/data/leased"), "-"}), "a process holds a lease on it");
        check_refused(cp(bundle, {inside(bundle, "/data"), bundle.host() / "copy"}), "a process holds a lease on it");
    }
    bundle.mount("/data", "tmpfs", "tmpfs", {"tmpcopyup"});
    const Outcome started = run(bundle);
    CHECK(started.status != 0);
    CHECK_MESSAGE(started.err.find("leased") != std::string::npos, started.err);
}

TEST_CASE("cp attacks: the process in the container has the payload's user and nothing else") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool mapped : {false, true}) {
        CAPTURE(mapped);
        Bundle bundle;
        if (mapped) map_ids(bundle);
        bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1001}, {"additionalGids", {7}}};
        fs::permissions(bundle.rootfs() / "data", fs::perms(0777));
        const Container container(waiting(bundle), As::running);
        const UniqueFd callers(::open((bundle.host()).c_str(), O_RDONLY | O_DIRECTORY));
        HeldCopy copy(bundle, "/data/file", {.fds = {{9, callers.get()}}});
        const auto ids = [&](unsigned id) {
            const std::string text = std::to_string((mapped ? 100000 : 0) + id);
            return pinfold::concat(text, " ", text, " ", text, " ", text);
        };
        CHECK(status_line(copy.helper(), "Uid") == ids(1000));
        CHECK(status_line(copy.helper(), "Gid") == ids(1001));
        CHECK(status_line(copy.helper(), "Groups") == (mapped ? "100007" : "7"));
        for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
            CHECK(status_line(copy.helper(), set) == "0000000000000000");
        }
        CHECK(status_line(copy.helper(), "NoNewPrivs") == "1");
        CHECK(look_at(copy.helper() / "environ").st_uid == 0);  // not dumpable
        CHECK(fs::equivalent(copy.helper() / "root/probe", bundle.rootfs() / "probe"));
        for (const auto& fd : fs::directory_iterator(copy.helper() / "fd")) {
            const std::string target = fs::read_symlink(fd.path()).string();
            CHECK_MESSAGE(target.find(bundle.host().string()) == std::string::npos, target);
            CHECK_MESSAGE(target.find("pipe:") == std::string::npos, target);
        }
        const json seen = json::parse(container.exec({}, {"/probe", "list", "/proc"}).out).at("names");
        const auto is_pid = [](const json& name) { return std::isdigit(name.get<std::string>()[0]) != 0; };
        CHECK(std::ranges::count_if(seen, is_pid) == 2);  // the payload and the probe
        check_copied(copy.finish());
        CHECK(look_at(bundle.rootfs() / "data/file").st_size == 1'000'000);
    }
}

TEST_CASE("cp attacks: its process cannot be looked into where the container sees it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.drop_namespace("pid");
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    fs::permissions(bundle.rootfs() / "data", fs::perms(0777));
    const Container container(waiting(bundle), As::running);
    HeldCopy copy(bundle, "/data/file");
    for (const char* file : {"mem", "environ", "exe", "root/probe"}) {
        CAPTURE(file);
        const json answer = json::parse(container.exec({}, {"/probe", "open", copy.helper() / file, "ro"}).out);
        CHECK(answer.at("ok") == false);
    }
    const json listed = json::parse(container.exec({}, {"/probe", "list", copy.helper() / "fd"}).out);
    CHECK(listed.value("errno", "") == "EACCES");
    check_copied(copy.finish());
}

TEST_CASE("cp attacks: SIGKILL on the way in leaves no process and no file") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    for (const char* before : {"", "the old text"}) {
        if (*before != '\0') write_text(bundle.rootfs() / "data/file", before);
        const std::vector<std::string> names = names_in(bundle.rootfs() / "data");
        HeldCopy copy(bundle, "/data/file");
        copy.kill();
        CHECK(copy.finish().status == 128 + SIGKILL);
        CHECK(copy.helper_ends());
        CHECK(names_in(bundle.rootfs() / "data") == names);
        CHECK(read_text(bundle.rootfs() / "data/file") == before);
    }
}

TEST_CASE("cp attacks: SIGKILL at any of its system calls leaves a file whole or not at all") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    const std::string text(200'000, 'x');
    write_text(bundle.rootfs() / "data/file", text);
    const fs::path target = bundle.host() / "target";
    fs::create_directories(target);
    const std::vector<std::string> words = {inside(bundle, "/data/file"), target / "file"};
    check_copied(cp_traced(bundle, {}, words));
    std::istringstream calls(read_text(bundle.host() / "trace"));
    std::map<std::string, int> counts;
    int points = 0;
    // The sanitizers begin with thousands of calls of their own.
    const int stride = pinfold::testing::sanitised() ? 400 : pinfold::testing::slow_machine() ? 20 : 1;
    for (std::string call; std::getline(calls, call);) {
        const std::string name = call.substr(0, call.find('('));
        if (name.size() == call.size()) continue;
        const int number = ++counts[name];
        if (++points % stride != 0) continue;
        CAPTURE(call);
        fs::remove(target / "file");
        cp_traced(bundle, {"-e", "inject=" + name + ":signal=KILL:when=" + std::to_string(number)}, words);
        const std::vector<std::string> names = names_in(target);
        if (names.empty()) continue;
        CHECK(names == std::vector<std::string>{"file"});
        CHECK(look_at(target / "file").st_size == off_t(text.size()));
    }
    CHECK(counts["linkat"] == 1);
}

TEST_CASE("cp attacks: a full file system, and one without unnamed files, leave no half a file") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), As::running);
    write_text(bundle.rootfs() / "data/file", "text");
    const fs::path target = bundle.host() / "target";
    fs::create_directories(target);
    const std::vector<std::string> words = {inside(bundle, "/data/file"), target / "file"};
    check_copied(cp_traced(bundle, {"-e", "trace=openat"}, words));
    fs::remove(target / "file");
    std::istringstream calls(read_text(bundle.host() / "trace"));
    int number = 0;
    for (std::string call; call.find("O_TMPFILE") == std::string::npos && std::getline(calls, call);) {
        if (call.starts_with("openat(")) ++number;  // signals have lines, too
    }
    const std::string unsupported = "inject=openat:error=EOPNOTSUPP:when=" + std::to_string(number);
    const std::string full = "inject=pwrite64:error=ENOSPC";
    check_refused(cp_traced(bundle, {"-e", full}, words), "'file': write: no space left on device (ENOSPC)");
    CHECK(names_in(target).empty());
    check_refused(cp_traced(bundle, {"-e", unsupported, "-e", full}, words), "no space left");
    CHECK(names_in(target).empty());
    for (int round = 0; round < 2; ++round) {
        check_copied(cp_traced(bundle, {"-e", unsupported}, words));
        CHECK(read_text(bundle.host() / "trace").find(".pinfold-") != std::string::npos);
        CHECK(names_in(target) == std::vector<std::string>{"file"});
        CHECK(read_text(target / "file") == "text");
    }
}
