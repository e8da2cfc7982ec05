// Sandboxes that stay and keep their files on the host's disk: what survives a stop, who may have it, and what the job
// has planted there for whoever copies it.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cp.hpp"
#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

using Words = std::vector<std::string>;

std::string kept_in(const Bundle& bundle) { return bundle.host() / "kept"; }
fs::path workspace(const Bundle& bundle) { return bundle.host() / "kept/files/workspace"; }

json state_of(const DetachedSandbox& box, const Bundle& bundle) {
    return json::parse(box.run({"state", bundle.id()}).out);
}

void check_done(const Ended& ended) { CHECK_MESSAGE(ended.status == 0, ended.err); }

void stop(const DetachedSandbox& box, const Bundle& bundle) { check_done(box.run({"stop", bundle.id()})); }
void start_again(const DetachedSandbox& box, const Bundle& bundle) { check_done(box.run({"start", bundle.id()})); }

// A sandbox that has done this in its work directory, and has stopped.
struct Stopped {
    Stopped(const Bundle& bundle, const std::string& script, const SpawnOptions& spawn = {})
        : box(bundle, {"--keep-files", kept_in(bundle)}, {}, spawn) {
        check_done(box.exec({}, {"sh", "-c", script}));
        stop(box, bundle);
    }
    DetachedSandbox box;
};

}  // namespace

TEST_CASE("kept files: a sandbox that has stopped starts again with its command, its limits and its files") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Command command = {
            "sh", "-c",
            "echo x >> runs; echo x >> /tmp/runs; stat -c %u:%g . /tmp runs; wc -l < runs; wc -l < /tmp/runs; "
            "echo $GREETING; ulimit -n; cat seed; echo changed > seed; exec sleep 1000"};
        SpawnOptions from = spawn;
        from.directory = bundle.host();
        write_text(bundle.host() / "seed", "copied\n");
        const auto printed = [](int run, const char* seed) {
            const std::string count = std::to_string(run) + "\n";
            return "1000:1000\n1000:1000\n1000:1000\n" + count + count + "hello\n1024\n" + seed + "\n";
        };
        const auto await_line = [&](const char* last) {
            Process follower(bundle.verb({"logs", "--follow", bundle.id()}), spawn);
            std::string text;
            for (std::string line; line != last; text += line + "\n") line = follower.read_line();
            return text;
        };
        {
            // Relative paths are those of who has started it first.
            const DetachedSandbox box(
                bundle, {"--keep-files", "kept", "--copy-in", "seed:seed", "-e", "GREETING=hello", "--pids", "17"},
                command, from);
            CHECK(await_line("copied") == printed(1, "copied"));
            check_refused(box.run({"start", bundle.id()}), "is running");
            const json limits = state_of(box, bundle)["limits"];
            stop(box, bundle);
            CHECK(state_of(box, bundle)["stopped_by"] == "stop");
            CHECK(box.run({"prune"}).out == "");
            start_again(box, bundle);
            // What was printed before is gone; what was copied in is not copied again.
            CHECK(await_line("changed") == printed(2, "changed"));
            const json state = state_of(box, bundle);
            CHECK(state["status"] == "running");
            CHECK(state["limits"] == limits);
            CHECK(state["annotations"]["org.pinfold.kept-files"] == kept_in(bundle));
        }
    });
}

TEST_CASE("kept files: once its state is gone, as after a reboot, the same directory goes on") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Words options = {"--keep-files", kept_in(bundle)};
        { const Stopped first(bundle, "echo here > file; umask 077; mkdir -p /tmp/a/b; echo tmp > /tmp/a/b/c", spawn); }
        CHECK(!fs::exists(bundle.state_root() / bundle.id()));
        {
            const DetachedSandbox next(bundle, options, {}, spawn);
            CHECK(next.exec({}, {"cat", "file", "/tmp/a/b/c"}).out == "here\ntmp\n");
        }
        // By another name, and another user inside, too.
        const Ended other = run_program(
            bundle.verb({"sandbox", "-d", "--name", bundle.id() + "-2", "--user", "7", "--keep-files", kept_in(bundle),
                         "--", "sh", "-c", "stat -c %u file; cat file; echo more >> file"}),
            spawn);
        check_done(other);
        const std::string id = bundle.id() + "-2";
        check_done(run_program(bundle.verb({"wait", id}), spawn));
        CHECK(run_program(bundle.verb({"logs", id}), spawn).out == "7\nhere\n");
        check_done(run_program(bundle.verb({"delete", id}), spawn));
        CHECK(read_text(workspace(bundle) / "file") == "here\nmore\n");
        // Nothing on the host's disk is root's, and nobody else gets there.
        const struct stat file = look_at(workspace(bundle) / "file");
        CHECK(file.st_uid == (spawn.uid ? *spawn.uid : 0x7fffffff));
        CHECK(mode_of(kept_in(bundle)) == 0700);
    });
}

TEST_CASE("kept files: what cannot be started again says why, and what fails to start is still there") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        {
            const DetachedSandbox box(bundle, {}, {}, spawn);
            stop(box, bundle);
            const Ended refused = box.run({"start", bundle.id()});
            check_refused(refused, "were in memory");
            CHECK_MESSAGE(refused.err.find("hint: ") != std::string::npos, refused.err);
            CHECK(refused.err.find("--keep-files") != std::string::npos);
            CHECK(state_of(box, bundle)["status"] == "stopped");
        }
        for (const Command& command : {Command{}, Command{"sleep", "1000"}}) {
            CAPTURE(command.size());
            fs::create_directories(bundle.host() / "bound");
            const DetachedSandbox box(
                bundle,
                {"--keep-files", kept_in(bundle), "--ro-bind", (bundle.host() / "bound").string() + ":/workspace/b"},
                command, spawn);
            stop(box, bundle);
            fs::rename(bundle.host() / "bound", bundle.host() / "away");
            check_refused(box.run({"start", bundle.id()}), "--ro-bind");
            CHECK(state_of(box, bundle)["status"] == "stopped");
            CHECK(state_of(box, bundle)["stopped_by"] == "stop");
            fs::rename(bundle.host() / "away", bundle.host() / "bound");
            start_again(box, bundle);
            CHECK(state_of(box, bundle)["status"] == "running");
            stop(box, bundle);
            // At the last step, when all else was done.
            fs::remove_all(workspace(bundle) / "b");
            write_text(workspace(bundle) / "b", "a file, where a directory is to be");
            CHECK(box.run({"start", bundle.id()}).status == 1);
            CHECK(state_of(box, bundle)["status"] == "stopped");
            fs::remove(workspace(bundle) / "b");
            start_again(box, bundle);
        }
    });
}

TEST_CASE("kept files: a start that fails loses neither the output of the last run nor its end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox box(bundle, {"--keep-files", kept_in(bundle), "--cwd", "/workspace/sub"},
                                  {"sh", "-c", "echo precious; cd ..; rmdir sub; echo x > sub; exit 7"}, spawn);
        CHECK(box.run({"wait", bundle.id()}).out == "7\n");
        const json ended = state_of(box, bundle)["ended"];
        for (int i = 0; i < 2; ++i) {
            CHECK(box.run({"start", bundle.id()}).status == 1);
            CHECK(box.run({"logs", bundle.id()}).out == "precious\n");
            CHECK(box.run({"wait", bundle.id()}).out == "7\n");
            CHECK(state_of(box, bundle)["ended"] == ended);
        }
        fs::remove(workspace(bundle) / "sub");
        start_again(box, bundle);
        CHECK(box.run({"wait", bundle.id()}).out == "7\n");
        CHECK(box.run({"logs", bundle.id()}).out == "precious\n");
        CHECK(state_of(box, bundle)["ended"] != ended);
    });
}

TEST_CASE("kept files: whatever the job has made of them, it starts again, and they can be copied") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Stopped stopped(bundle,
                              "echo kept > file; mkdir deep; (cd deep; for i in $(seq 300); do mkdir x; cd x; done); "
                              "chmod 0 . /tmp",
                              spawn);
        check_copied(stopped.box.run({"cp", inside(bundle, "/workspace/file"), bundle.host() / "copy"}));
        CHECK(read_text(bundle.host() / "copy") == "kept\n");
        start_again(stopped.box, bundle);
        CHECK(stopped.box.exec({}, {"cat", "/workspace/file"}).out == "kept\n");
    });
}

TEST_CASE("kept files: two sandboxes never have the same") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        for (const Command& command : {Command{}, Command{"sleep", "1000"}}) {
            CAPTURE(command.size());
            const DetachedSandbox box(bundle, {"--keep-files", kept_in(bundle)}, command, spawn);
            const Words again =
                bundle.verb({"sandbox", "-d", "--name", bundle.id() + "-2", "--keep-files", kept_in(bundle)});
            check_refused(run_program(again, spawn), "sandbox '" + bundle.id() + "' has it", 125);
            stop(box, bundle);
            check_done(run_program(again, spawn));
            check_refused(box.run({"start", bundle.id()}), "sandbox '" + bundle.id() + "-2' has it");
            check_done(run_program(bundle.verb({"delete", "--force", bundle.id() + "-2"}), spawn));
            start_again(box, bundle);
        }
    });
}

TEST_CASE(
    "kept files: those of another sandbox, or of another pid namespace, or none at all, are not taken for its own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Stopped stopped(bundle, "echo mine > file", spawn);
        const fs::path record = fs::path(kept_in(bundle)) / "sandbox";
        const std::string written = read_text(record);
        const auto copy = [&] { return stopped.box.run({"cp", bundle.id() + ":/workspace/file", "-"}); };
        CHECK(copy().out == "mine\n");
        write_text(record, "other" + written.substr(written.find(' ')));
        check_refused(copy(), "are those of sandbox 'other' by now");
        // Whether a process lives is not to be told from another namespace of processes.
        write_text(record, written.substr(0, written.rfind(' ')) + " pid:[1]");
        check_refused(stopped.box.run({"start", bundle.id()}), "of another pid namespace may have it");
        write_text(record, written);
        fs::rename(kept_in(bundle), bundle.host() / "away");
        check_refused(stopped.box.run({"start", bundle.id()}), "its files in '" + kept_in(bundle) + "'");
        CHECK(!fs::exists(kept_in(bundle)));
        fs::rename(bundle.host() / "away", kept_in(bundle));
        // A policy counts one that starts again as one, not as two.
        const fs::path policy = bundle.host() / "policy.json";
        write_text(policy, R"({"max_sandboxes": 1})");
        check_done(stopped.box.run({"--policy", policy, "start", bundle.id()}));
        CHECK(state_of(stopped.box, bundle)["status"] == "running");
    });
}

TEST_CASE("kept files: their size is not limited, and nobody says so") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const std::string place = kept_in(bundle);
        const Ended asked = run_job(bundle, {{"-d", "--keep-files", place, "--disk", "20m"}, {}, spawn});
        check_refused(asked, "disk_mb 20 cannot be held", 125);
        CHECK_MESSAGE(asked.err.find("--allow-unenforced disk_mb") != std::string::npos, asked.err);
        const DetachedSandbox box(
            bundle, {"--keep-files", place, "--disk", "20m", "--allow-unenforced", "disk_mb"},
            {"sh", "-c", "for i in 1 2; do dd if=/dev/zero of=big$i bs=1M count=15 2>&-; done; du -m . | cut -f1"},
            spawn);
        check_done(box.run({"wait", bundle.id()}));
        const json result = json::parse(box.run({"wait", "--result", "-", bundle.id()}).out);
        CHECK(std::stoi(result["stdout"].get<std::string>()) >= 30);
        const json limit = limit_of(result, "disk_mb");
        CHECK(limit["enforced_by"] == nullptr);
        CHECK(limit["hit"] == nullptr);
    });
}

TEST_CASE("kept files: a directory that is somebody else's, or something else, is not taken") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path host = bundle.host();
        const auto refuse = [&](const std::string& place, const std::string& words, const Words& more = {}) {
            CAPTURE(place);
            Words options = {"-d", "--keep-files", place};
            options.insert(options.end(), more.begin(), more.end());
            check_refused(run_job(bundle, {options, {}, spawn}), words, 125);
            CHECK(!fs::exists(bundle.state_root() / bundle.id()));
        };
        const auto make = [&](const char* name, uid_t uid) {
            fs::create_directory(host / name);
            REQUIRE(::chown((host / name).c_str(), uid, uid) == 0);
            return (host / name).string();
        };
        const uid_t own = spawn.uid.value_or(0);
        const std::string full = make("full", own);
        fs::create_directory(host / "full/workspace");
        refuse(full, "other files than those of a sandbox");
        CHECK(mode_of(full) == 0755);
        refuse(make("another's", 4321), "belongs to user 4321");
        refuse(bundle.state_root(), "state");
        refuse(bundle.state_root() / "below", "state");
        refuse(bundle.state_root().parent_path(), "state");
        refuse(host / "no/such/place", "--keep-files");
        refuse("/etc", "forbidden_paths");
        refuse("/proc/self", "");
        const std::string empty = make("empty", own);
        refuse(empty, "exclude each other", {"--scratch", host});
        refuse(empty, "'/workspace' is taken by", {"--bind", full + ":/workspace"});
        refuse(empty, "'/tmp' is taken by", {"--bind", full + ":/x/../tmp/"});
        CHECK(fs::is_empty(empty));
        refuse(empty, "contains it", {"--ro-bind", host.string() + ":/data"});
        check_refused(run_job(bundle, {{"--keep-files", empty}, {"true"}, spawn}), "--detach", 125);
        // One that is empty is taken, and from then on its owner's alone.
        { const DetachedSandbox box(bundle, {"--keep-files", empty}, {}, spawn); }
        CHECK(mode_of(empty) == 0700);
        REQUIRE(::chmod(empty.c_str(), 0755) == 0);
        refuse(empty, "others than its owner");
        REQUIRE(::chmod(empty.c_str(), 0700) == 0);
        // Links in the place of what is shown lead nowhere.
        const fs::path files = host / "empty/files";
        fs::rename(files / "workspace", files / "away");
        fs::create_symlink(full, files / "workspace");
        refuse(empty, "");
        fs::remove(files / "workspace");
        fs::rename(files / "away", files / "workspace");
        REQUIRE(::lchown((files / "workspace").c_str(), 4321, 4321) == 0);
        refuse(empty, "belongs to user 4321");
        fs::rename(files, host / "away");
        fs::create_symlink(host / "away", files);
        refuse(empty, "");
        fs::remove(host / "empty/sandbox");
        fs::create_symlink(host / "new", host / "empty/sandbox");
        refuse(empty, "");
        CHECK(!fs::exists(host / "new"));
    });
}

TEST_CASE("kept files: a policy says where they may be, whenever it starts") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const fs::path host = bundle.host();
    fs::create_directories(host / "allowed");
    const Stopped first(bundle, "true");
    const SystemPolicy policy(bundle, R"({"allowed_write_paths": [")" + (host / "allowed").string() + R"("]})");
    check_refused(first.box.run({"start", bundle.id()}), "allowed_write_paths");
    check_refused(cp(bundle, {inside(bundle, "/workspace"), host / "allowed/copy"}), "allowed_write_paths");
    const auto start_in = [&](const fs::path& place) {
        return run_program(bundle.verb({"sandbox", "-d", "--name", bundle.id() + "-2", "--keep-files", place}));
    };
    check_refused(start_in(host / "elsewhere"), "allowed_write_paths", 125);
    CHECK(!fs::exists(host / "elsewhere"));
    check_done(start_in(host / "allowed/kept"));
    check_done(verb(bundle, {"delete", "--force", bundle.id() + "-2"}));
}

TEST_CASE("kept files: a script is written anew, whatever the job has put in its place") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        write_text(bundle.host() / "script.sh", "echo first > other; echo ran; rm -f \"$0\"; ln -s other \"$0\"\n");
        const DetachedSandbox box(
            bundle, {"--keep-files", kept_in(bundle), "--lang", "bash", bundle.host() / "script.sh"}, {}, spawn);
        check_done(box.run({"wait", bundle.id()}));
        start_again(box, bundle);
        check_done(box.run({"wait", bundle.id()}));
        CHECK(box.run({"logs", bundle.id()}).out == "ran\n");
        CHECK(read_text(workspace(bundle) / "other") == "first\n");
        // A directory is not removed for it; who reads the hint can.
        fs::remove(workspace(bundle) / "script.sh");
        fs::create_directory(workspace(bundle) / "script.sh");
        const Ended refused = box.run({"start", bundle.id()});
        check_refused(refused, "remove the script of the last start");
        CHECK_MESSAGE(
            refused.err.find("hint: rm -r " + kept_in(bundle) + "/files/workspace/script.sh\n") != std::string::npos,
            refused.err);
    });
}

TEST_CASE("kept files: no program there ever has its owner's rights") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Stopped stopped(bundle, "cp /bin/true t; chmod 4755 t; chmod 2755 t; mknod d c 1 3; chmod 755 t", spawn);
        CHECK((mode_of(workspace(bundle) / "t") & 06000) == 0);
        CHECK(!fs::exists(workspace(bundle) / "d"));
        // Should it get one in another way, the job is not let at it.
        REQUIRE(::chmod((workspace(bundle) / "t").c_str(), 04755) == 0);
        check_refused(stopped.box.run({"start", bundle.id()}), "set-user-ID");
    });
}

TEST_CASE("kept files: they are copied out of a sandbox that has stopped, and into it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const Stopped stopped(bundle,
                              "mkdir -p a/b; echo text > a/b/c; ln -s b/c a/link; ln -s /tmp/t up; echo t > /tmp/t; "
                              "echo own > private; chmod 600 private",
                              spawn);
        const fs::path host = bundle.host();
        const auto copy = [&](const std::string& from, const std::string& to) { return cp(bundle, {from, to}, spawn); };
        CHECK(copy(inside(bundle, "/workspace/a/b/c"), "-").out == "text\n");
        CHECK(copy(inside(bundle, "/workspace/private"), "-").out == "own\n");
        CHECK(copy(inside(bundle, "/workspace/up"), "-").out == "t\n");  // a link leads where it did
        check_copied(copy(inside(bundle, "/workspace/a"), host / "out"));
        CHECK(read_text(host / "out/b/c") == "text\n");
        CHECK(fs::read_symlink(host / "out/link") == "b/c");
        write_text(host / "in", "new\n");
        check_copied(copy(host / "in", inside(bundle, "/workspace/a/new")));
        check_copied(copy(host / "in", inside(bundle, "/tmp/")));
        for (const char* path : {"/etc/passwd", "/", "/workspace/../etc", "/sandbox"}) {
            CAPTURE(path);
            check_refused(copy(inside(bundle, path), "-"), "/workspace and /tmp are kept");
            check_refused(copy(host / "in", inside(bundle, path)), "/workspace and /tmp are kept");
        }
        start_again(stopped.box, bundle);
        CHECK(stopped.box.exec({}, {"sh", "-c", "cat a/new /tmp/in; stat -c %u:%g a/new; echo more >> a/new"}).out ==
              "new\nnew\n1000:1000\n");
        CHECK(copy(inside(bundle, "/workspace/a/new"), "-").out == "new\nmore\n");
    });
}

TEST_CASE("kept files: what the job has planted leads no copy out, holds up none, and is no file of the host's") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path host = bundle.host();
        write_text(host / "secret", "the host's own");
        REQUIRE(::chmod((host / "secret").c_str(), 0666) == 0);
        const std::string secret = host / "secret";
        const std::string up = "../../../../../../../../../../../..";
        const Stopped stopped(bundle,
                              "ln -s " + secret + " abs; ln -s " + up + secret + " rel; ln -s " + host.string() +
                                  " dir; ln -s /proc/self/root" + secret +
                                  " magic; ln -s / top; ln -s ../../sandbox lock; "
                                  "mkfifo fifo; mkdir tree; mkfifo tree/fifo; echo x > one; ln one two; mkdir links; "
                                  "ln -s " +
                                  secret +
                                  " links/abs; "
                                  "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
                              spawn);
        const auto copy = [&](const std::string& from, const std::string& to) { return cp(bundle, {from, to}, spawn); };
        for (const char* name : {"abs", "rel", "dir/secret", "magic", "lock", "fifo", "sock", "tree", "links"}) {
            CAPTURE(name);
            const std::string path = inside(bundle, std::string("/workspace/") + name);
            const Ended out = copy(path, host / "out");
            CHECK(out.status == 1);
            CHECK(!fs::exists(host / "out"));
            CHECK(copy(path, "-").out == "");
        }
        write_text(host / "in", "new");
        // A link at the target is replaced, one on the way is followed in there.
        for (const char* name : {"abs", "rel", "magic", "fifo"})
            copy(host / "in", inside(bundle, std::string("/workspace/") + name));
        CHECK(copy(host / "in", inside(bundle, "/workspace/dir/secret")).status == 1);
        CHECK(copy(host / "in", inside(bundle, "/workspace/top/etc/x")).status == 1);
        CHECK(read_text(secret) == "the host's own");
        check_copied(copy(inside(bundle, "/workspace/two"), host / "two"));
        CHECK(look_at(host / "two").st_nlink == 1);
        // All that does not keep it from starting again.
        start_again(stopped.box, bundle);
        CHECK(stopped.box.exec({}, {"cat", "two"}).out == "x\n");
    });
}
