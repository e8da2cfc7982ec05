// From create to delete: states and what is legal in each, and bad moments.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "harness.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

std::vector<std::string> create_words(const Bundle& bundle, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"create", "--bundle", bundle.path()};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(bundle.id());
    return words;
}

Ended create(const Bundle& bundle, const std::vector<std::string>& more = {}) {
    bundle.write_config();
    return verb(bundle, create_words(bundle, more));
}

}  // namespace

TEST_CASE("lifecycle: created, running, stopped, gone") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.probe_each({{"create", "/data/ran", "yes"}, {"wait-signal"}});
    const Container container(bundle, Container::As::created);
    CHECK(read_text(bundle.host() / "container.pid") == std::to_string(container.pid()));
    const json created = json::parse(container.must({"state", bundle.id()}));
    CHECK(created["status"] == "created");
    CHECK(created["pid"] == container.pid());
    CHECK(created["id"] == bundle.id());
    CHECK(created["bundle"] == bundle.path().string());
    CHECK_FALSE(fs::exists(bundle.rootfs() / "data/ran"));
    container.must({"start", bundle.id()});
    CHECK(container.status() == "running");
    CHECK(await_file(bundle.rootfs() / "data/ran") == "yes");
    container.must({"kill", bundle.id(), "KILL"});
    container.await_end();
    const json stopped = json::parse(container.must({"state", bundle.id()}));
    CHECK(stopped["status"] == "stopped");
    CHECK(stopped["pid"] == 0);
    container.must({"delete", bundle.id()});
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("lifecycle: what is not legal is refused in each state, and changes nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const std::string& id = bundle.id();
    const Container container(waiting(bundle), Container::As::created);
    check_refused(create(bundle), "already exists");
    check_refused(verb(bundle, {"resume", id}), "only a paused container can be resumed");
    check_refused(verb(bundle, {"pause", id}), "only a running container can be paused");
    CHECK(container.status() == "created");

    container.must({"start", id});
    check_refused(verb(bundle, {"start", id}), "only a created container can be started: '" + id + "' is running");
    check_refused(verb(bundle, {"delete", id}), "is running");
    CHECK(container.status() == "running");

    container.must({"kill", id, "9"});
    container.await_end();
    check_refused(verb(bundle, {"start", id}), "is stopped");
    check_refused(verb(bundle, {"kill", id}), "container not running");
    check_refused(verb(bundle, {"pause", id}), "is stopped");
    check_refused(container.exec({}, {"/probe", "report"}), "is stopped", 255);
    CHECK(container.status() == "stopped");
}

TEST_CASE("lifecycle: a container that does not exist") {
    NEEDS_ROOT();
    Bundle bundle;
    for (const char* word : {"start", "kill", "delete", "state", "pause", "resume", "ps", "events"}) {
        CAPTURE(word);
        check_refused(verb(bundle, {word, "nobody"}), "container 'nobody' does not exist");
    }
    check_refused(verb(bundle, {"exec", "nobody", "true"}), "does not exist", 255);
    CHECK(verb(bundle, {"delete", "--force", "nobody"}).status == 0);
    for (const char* bad : {"..", "a/b", ""}) {
        CAPTURE(bad);
        CHECK(verb(bundle, {"delete", "--force", bad}).status == 1);
    }
}

TEST_CASE("lifecycle: a created container holds nothing of the host's while it waits") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::created, {.global = {"--log", bundle.host() / "log"}});
    const fs::path proc = "/proc/" + std::to_string(container.pid());
    std::vector<std::string> own;
    for (const auto& entry : fs::directory_iterator(proc / "fd")) {
        const std::string name = entry.path().filename();
        if (name != "0" && name != "1" && name != "2") own.push_back(fs::read_symlink(entry.path()));
    }
    REQUIRE(own.size() == 1);
    CHECK(own[0].starts_with("socket:"));
    // Nor of pinfold's: it waits in a program of its own, which is next to nothing.
    CHECK(fs::read_symlink(proc / "exe").string().starts_with("/memfd:pinfold"));
    const std::string status = read_text(proc / "status");
    CHECK(std::stoi(status.substr(status.find("VmRSS:") + 6)) < 64);
}

TEST_CASE("lifecycle: delete --force ends one whose start waits, with its lock held, for a process that was stopped") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::created);
    ::kill(container.pid(), SIGSTOP);
    Process starting(bundle.verb({"start", bundle.id()}), {});
    // It has taken the socket away when it has connected to it.
    while (fs::exists(bundle.state_root() / bundle.id() / "start")) ::sched_yield();
    container.must({"delete", "--force", bundle.id()});
    CHECK(starting.finish().status == 1);
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("lifecycle: create passes descriptors on to the payload") {
    NEEDS_ROOT();
    Bundle bundle;
    write_text(bundle.host() / "passed", "through");
    const UniqueFd file(::open((bundle.host() / "passed").c_str(), O_RDONLY | O_CLOEXEC));
    const UniqueFd out(::open((bundle.host() / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    bundle.probe({"read-fd", "4"});
    const Container container(bundle, Container::As::running,
                              {.args = {"--preserve-fds", "2"},
                               .spawn = {.fds = {{1, out.get()}, {3, file.get()}, {4, file.get()}, {5, file.get()}}}});
    container.await_end();
    CHECK(json::parse(read_text(bundle.host() / "out"))["text"] == "through");
}

TEST_CASE("lifecycle: a created container can be deleted, and ends with it") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::created);
    container.must({"delete", bundle.id()});
    container.await_end();
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("lifecycle: a start that fails says why and leaves nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.rootfs() / "script", "#!/no/such/interpreter\n");
    ::chmod((bundle.rootfs() / "script").c_str(), 0755);
    bundle.config["process"]["args"] = {"/script"};
    const Container container(bundle, Container::As::created);
    check_refused(verb(bundle, {"start", bundle.id()}), "no such file or directory");
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("lifecycle: a missing program is told by create already") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["args"] = {"nothing-of-that-name"};
    check_refused(create(bundle), "executable file not found in $PATH");
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("lifecycle: kill takes names and numbers, and all means all") {
    NEEDS_ROOT();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::running);
    for (const char* bad : {"NOSUCH", "-1", "65", "SIG"}) {
        CAPTURE(bad);
        const Ended ended = verb(bundle, {"kill", bundle.id(), "--", bad});
        CHECK(ended.status == 1);
    }
    for (const char* harmless : {"WINCH", "SIGWINCH", "winch", "28", "0"}) {
        CAPTURE(harmless);
        container.must({"kill", bundle.id(), harmless});
    }
    CHECK(container.status() == "running");
    container.must({"kill", "--all", bundle.id(), "KILL"});
    container.await_end();
    container.must({"kill", "--all", bundle.id(), "KILL"});  // engines do that
}

TEST_CASE("lifecycle: kill --all reaches what outlives the first process of a shared pid namespace") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    bundle.drop_namespace("pid").probe({"orphan"});
    const Container container(bundle, Container::As::running);
    container.await_end();
    CHECK_FALSE(json::parse(container.must({"ps", "--format", "json", bundle.id()})).empty());
    container.must({"kill", "--all", bundle.id(), "KILL"});
    container.must({"delete", bundle.id()});
}

TEST_CASE("lifecycle: list as a table, as ids, as JSON") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    CHECK(verb(bundle, {"list", "--format", "json"}).out == "null\n");
    const Container container(waiting(bundle), Container::As::running);
    CHECK(container.must({"list", "-q"}) == bundle.id() + "\n");
    const std::string table = container.must({"list"});
    CHECK(table.starts_with("ID "));
    CHECK(table.find(bundle.id()) != std::string::npos);
    CHECK(table.find("running") != std::string::npos);
    const std::string text = container.must({"list", "--format", "json"});
    CHECK(std::count(text.begin(), text.end(), '\n') == 1);
    CHECK(json::parse(text).at(0)["status"] == "running");
    check_refused(run_program({runtime_command().front(), "--root", bundle.host() / "nowhere", "list"}), "ENOENT");
}

TEST_CASE("lifecycle: the terminal of a created container goes to the console socket, its pidfd to another") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["terminal"] = true;
    bundle.probe({"winsize"});
    bundle.config["process"]["consoleSize"] = {{"height", 11}, {"width", 22}};
    const DescriptorSocket console(bundle.host() / "console");
    const DescriptorSocket pidfds(bundle.host() / "pidfds");
    const Container container(bundle, Container::As::created,
                              {.args = {"--console-socket", console.path(), "--pidfd-socket", pidfds.path()}});
    Terminal terminal(console.receive());
    const UniqueFd pidfd = pidfds.receive();
    container.must({"start", bundle.id()});
    terminal.await_line("11x22");
    container.must({"kill", bundle.id(), "9"});
    CHECK(await_readable(pidfd.get()));
}

TEST_CASE("lifecycle: bad surroundings are told, and nothing is left") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle);
    bundle.config["process"]["terminal"] = true;
    check_refused(create(bundle), "needs --console-socket");
    check_refused(create(bundle, {"--console-socket", bundle.host() / "absent"}), "console socket");
    CHECK_FALSE(exists(bundle));
    bundle.config["process"]["terminal"] = false;
    check_refused(create(bundle, {"--console-socket", bundle.host() / "absent"}), "process.terminal");
    check_refused(create(bundle, {"--bundle", "/nowhere"}), "bundle '/nowhere'");
    check_refused(create(bundle, {"--pid-file", "/nowhere/pid"}), "/nowhere/pid");
    CHECK_FALSE(exists(bundle));
    check_refused(run_program({runtime_command().front(), "--root", "/proc/nowhere", "create", "--bundle",
                               bundle.path(), bundle.id()}),
                  "make /proc/nowhere");
}

TEST_CASE("lifecycle: a state root without room") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle).write_config();
    fs::create_directory(bundle.host() / "full");
    const MountGuard full("tmpfs", bundle.host() / "full", "tmpfs", 0);
    REQUIRE(::mount("", (bundle.host() / "full").c_str(), "", MS_REMOUNT, "size=4k,nr_inodes=8") == 0);
    fs::permissions(bundle.host() / "full", fs::perms(0700));  // as a state root has to be
    write_text(bundle.host() / "full" / "fill", std::string(4096, 'x'));
    check_refused(run_program({runtime_command().front(), "--root", bundle.host() / "full", "create", "--bundle",
                               bundle.path(), bundle.id()}),
                  "ENOSPC");
    CHECK_FALSE(fs::exists(bundle.host() / "full" / bundle.id()));
}

TEST_CASE("lifecycle: a broken state file is named, does not hide the others, and can be forced away") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::running);
    const fs::path broken = bundle.state_root() / "broken";
    fs::create_directory(broken);
    write_text(broken / "state.json", "{\"version\": 1, ");
    check_refused(verb(bundle, {"state", "broken"}), "broken/state.json");
    check_refused(verb(bundle, {"delete", "broken"}), "broken/state.json");
    const Ended listed = verb(bundle, {"list", "-q"});
    CHECK(listed.status == 0);
    CHECK(listed.out == bundle.id() + "\n");
    CHECK(listed.err.find("broken/state.json") != std::string::npos);
    CHECK(verb(bundle, {"delete", "--force", "broken"}).status == 0);
    CHECK_FALSE(fs::exists(broken));
}

TEST_CASE("lifecycle: create killed in the middle leaves what a forced delete removes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    waiting(bundle);
    const std::string reached = bundle.host() / "reached";
    // A hook that never ends: the container is half made.
    bundle.config["hooks"]["createRuntime"] =
        json::array({{{"path", "/bin/sh"}, {"args", {"sh", "-c", "echo > " + reached + "; exec sleep 1000"}}}});
    bundle.write_config();
    Process creating(bundle.verb(create_words(bundle)), {});
    await_file(reached);
    CHECK(json::parse(verb(bundle, {"state", bundle.id()}).out)["status"] == "creating");
    creating.signal(SIGKILL);
    creating.finish();
    for (const pid_t child : children()) ::kill(child, SIGKILL);  // the hook is not the container's
    CHECK(verb(bundle, {"delete", "--force", bundle.id()}).status == 0);
    CHECK_FALSE(exists(bundle));
}

// Should that never happen, it gives up: see await_end in tests/unit/kernel.
TEST_CASE("lifecycle: a forced delete that is held up by who does not reap goes on once that has") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::running);
    {
        Process joined(bundle.verb({"exec", bundle.id(), "/probe", "wait-signal"}), {});
        CHECK(joined.read_line() == "READY");
    }
    // With exec killed, what it ran is a child of ours, and the container's first process ends after it.
    std::vector<pid_t> orphans = children();
    std::erase(orphans, container.pid());
    REQUIRE(orphans.size() == 1);
    Process deleting(bundle.verb({"delete", "--force", bundle.id()}), {});
    siginfo_t end{};
    REQUIRE(::waitid(P_PID, id_t(orphans[0]), &end, WEXITED | WNOWAIT) == 0);
    CHECK(fs::exists("/proc/" + std::to_string(container.pid()) + "/ns/pid"));
    CHECK(exists(bundle));
    CHECK(::waitpid(orphans[0], nullptr, 0) == orphans[0]);
    CHECK(deleting.finish().status == 0);
    CHECK_FALSE(exists(bundle));
}

TEST_CASE("lifecycle: create that is told to end while it waits for a hook undoes everything") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* kind : {"prestart", "createContainer"}) {
        CAPTURE(kind);
        Bundle bundle;
        waiting(bundle);
        const std::string reached = bundle.host() / "reached";
        bundle.config["hooks"][kind] =
            json::array({{{"path", "/bin/sh"}, {"args", {"sh", "-c", "echo > " + reached + "; exec sleep 1000"}}}});
        bundle.write_config();
        Process creating(bundle.verb(create_words(bundle)), {});
        await_file(reached);
        creating.signal(SIGTERM);
        const Ended ended = creating.finish();
        CHECK(ended.status == 1);
        CHECK(ended.err.find("interrupted by signal 15") != std::string::npos);
        CHECK_FALSE(exists(bundle));
    }
}

TEST_CASE("lifecycle: without /proc nothing is said of containers that run, and nothing removed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::running);
    const std::string& id = bundle.id();
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"list"}, {"state", id}, {"prune"}, {"delete", id}, {"delete", "--force", id}, {"kill", id}, {"ps", id}}) {
        for (const char* hide : {"mount -t tmpfs none /proc", "umount -l /proc"}) {
            CAPTURE(words);
            CAPTURE(hide);
            std::vector<std::string> line = {"/usr/bin/unshare",
                                             "-m",
                                             "--propagation",
                                             "private",
                                             "/bin/sh",
                                             "-c",
                                             std::string(hide) + " && exec \"$@\"",
                                             "sh"};
            const std::vector<std::string> called = bundle.verb(words);
            line.insert(line.end(), called.begin(), called.end());
            check_refused(run_program(line), "/proc is not mounted here");
        }
    }
    CHECK(container.status() == "running");
}

TEST_CASE("lifecycle: where no cgroups are mounted, a container that has some is not forgotten") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::running);
    if (cgroups_named(bundle.id()).empty()) SKIP_TEST("needs cgroups");
    std::vector<std::string> line = {"/usr/bin/unshare",
                                     "-m",
                                     "--propagation",
                                     "private",
                                     "/bin/sh",
                                     "-c",
                                     "mount -t tmpfs none /sys/fs/cgroup && exec \"$@\"",
                                     "sh"};
    const std::vector<std::string> called = bundle.verb({"delete", "--force", bundle.id()});
    line.insert(line.end(), called.begin(), called.end());
    check_refused(run_program(line), "cgroups are not mounted at");
    CHECK(container.status() == "stopped");
    CHECK_FALSE(cgroups_named(bundle.id()).empty());
    container.must({"delete", bundle.id()});
    CHECK(cgroups_named(bundle.id()).empty());
}

TEST_CASE("lifecycle: what somebody has put into its state directory goes with a container, but for mounts") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(waiting(bundle), Container::As::created);
    const fs::path state = bundle.state_root() / bundle.id();
    const fs::path precious = bundle.host() / "precious";
    fs::create_directories(precious);
    write_text(precious / "file", "kept");
    write_text(state / "stray", "");
    fs::create_directories(state / "deep/deeper");
    write_text(state / "deep/deeper/file", "");
    fs::create_symlink(precious, state / "deep/link");
    fs::create_directory(state / "mounted");
    {
        const MountGuard mounted(precious, state / "mounted", "", MS_BIND);
        check_refused(verb(bundle, {"delete", bundle.id()}), "mounted");
        CHECK(container.status() == "stopped");  // and not: creating, with the record gone
    }
    container.must({"delete", bundle.id()});
    CHECK_FALSE(exists(bundle));
    CHECK(read_text(precious / "file") == "kept");
}

TEST_CASE("lifecycle: a pid file takes any name that a file can have, and nobody can be in the way of it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"report"}).write_config();
    const auto run_with = [&](const std::string& name) {
        return verb(bundle, {"run", "--bundle", bundle.path(), "--pid-file", bundle.host() / name, bundle.id()});
    };
    CHECK(run_with(std::string(255, 'x')).status == 0);
    // Whoever can write to the directory has had every name that could be guessed.
    for (pid_t pid = ::getpid(); pid < ::getpid() + 3000; ++pid) {
        write_text(bundle.host() / ("c.pid." + std::to_string(pid) + ".new"), "");
    }
    const Ended ended = run_with("c.pid");
    CHECK_MESSAGE(ended.status == 0, ended.err);
}
