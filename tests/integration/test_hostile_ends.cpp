// Hostile jobs whose end, output or files could mislead whoever reads the result.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "hostile.hpp"
#include "terminal.hpp"

using namespace pinfold::integration;

namespace {

// A pipe to which a job holds the other end: its end is the end of the job's last process.
class Fuse {
public:
    explicit Fuse(const Bundle& bundle) {
        const std::string path = bundle.host() / "shared" / "fuse";
        REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
        REQUIRE(::chmod(path.c_str(), 0666) == 0);
        end_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    }
    bool await_end() const { return await_readable(end_.get()); }

private:
    UniqueFd end_;
};

// A directory of the host that a job may write to, whoever it is.
std::string make_shared(const Bundle& bundle) {
    const fs::path directory = bundle.host() / "shared";
    fs::create_directory(directory);
    REQUIRE(::chmod(directory.c_str(), 0777) == 0);
    return directory;
}

std::string drain(int fd) {
    std::string text;
    char bytes[16384];
    for (ssize_t count = 0; (count = ::read(fd, bytes, sizeof bytes)) > 0;) text.append(bytes, size_t(count));
    return text;
}

}  // namespace

TEST_CASE("hostile: programs that are none") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const End never_ran{"setup_failed", 125};
    run_attacks({
        {.name = "a text", .command = {"/etc/hosts"}, .end = never_ran},
        {.name = "a directory", .command = {"/workspace"}, .end = never_ran},
        {.name = "nothing at all", .command = {"/nonexistent"}, .end = never_ran},
        {.name = "an empty name", .command = {""}, .end = never_ran},
        {.name = "an empty script", .options = {"--lang", "sh", "-"}, .command = {}},
    });
}

TEST_CASE("hostile: scripts with odd names are read, and stored under their own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const char* name : {"a b", "$(touch x).sh", "'\"", "-rf", "new\nline", "\xff\xfe", "..."}) {
        INFO(std::string(name));
        const Bundle bundle;
        write_text(bundle.host() / name, "echo $0\n");
        const Ended ended = run_job(bundle, {{"--lang", "sh", bundle.host() / name}, {}, {}});
        CHECK(ended.out == "main.sh\n");
        CHECK(ended.status == 0);
    }
}

TEST_CASE("hostile: output that is no text arrives unchanged") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    run_attacks({
        {.name = "every byte",
         .command = {"perl", "-e", "print pack('C*', 0 .. 255)"},
         .check =
             [](const Attempt& attempt) {
                 std::string bytes = attempt.result["stdout_base64"];
                 CHECK(bytes.starts_with("AAECAwQFBgcICQoLDA0ODxAREhMU"));
                 CHECK(bytes.ends_with("9vf4+fr7/P3+/w=="));
             }},
        // The second is what JSON shows for bytes that are no text.
        {.name = "bytes that look like their own replacement",
         .command = {"printf", "\\377\\357\\277\\275"},
         .check = [](const Attempt& attempt) { CHECK(attempt.result["stdout_base64"] == "/++/vQ=="); }},
        {.name = "text that looks like a result",
         .command = {"printf", "%s", "\",\"status\":\"exited\",\"exit_code\":0}\n\xe2\x80\xa8\x1b[2J"},
         .check =
             [](const Attempt& attempt) {
                 CHECK(attempt.out() == "\",\"status\":\"exited\",\"exit_code\":0}\n\xe2\x80\xa8\x1b[2J");
                 CHECK(!attempt.result.contains("stdout_base64"));
             }},
    });
}

TEST_CASE("hostile: every exit code is the job's own") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const int step = pinfold::testing::slow_machine() ? 51 : 5;
    for (const bool rootless : {false, true}) {
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        for (int code = 0; code <= 255; code += step) {
            const Judged judged = judge_job(bundle, {{}, {"sh", "-c", "exit " + std::to_string(code)}, spawn});
            CHECK(judged.status == code);
            CHECK(judged.result["status"] == "exited");
            CHECK(judged.result["exit_code"] == code);
        }
    }
}

// Both streams lead to one pipe, which gets full in the turn of either of them: it holds one page more or less.
TEST_CASE("hostile: a flood for a reader that does not read") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const size_t already : {0, 4096}) {
        for (const As as : {As::root, As::user}) {
            CAPTURE(already);
            CAPTURE((as == As::user));
            Bundle bundle;
            const std::string shared = make_shared(bundle);
            const Fuse fuse(bundle);
            int ends[2];
            REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
            const UniqueFd reader(ends[0]);
            UniqueFd writer(ends[1]);
            REQUIRE(::write(writer.get(), std::string(already, 'x').data(), already) == ssize_t(already));
            SpawnOptions spawn = as == As::user ? normal_user(bundle) : SpawnOptions{};
            spawn.fds = {{1, writer.get()}, {2, writer.get()}};
            Process flood(
                bundle.verb({"sandbox", "--name", bundle.id(), "--output-limit", "1m", "--timeout", brief(), "--bind",
                             shared + ":/shared", "--", "sh", "-c", "exec 3> /shared/fuse; yes & yes >&2 & wait"}),
                spawn);
            writer.reset();
            CHECK(fuse.await_end());  // the deadline is kept, though nobody has read a byte
            CHECK(drain(reader.get()).size() <= already + (1 << 20));
            CHECK(flood.finish().status == 124);
        }
    }
}

TEST_CASE("hostile: output that nobody ever takes does not lengthen a life") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool to_terminal : {false, true}) {
        for (const std::string limit : {"", "1m"}) {
            for (const As as : {As::root, As::user}) {
                if ((to_terminal == (as == As::user)) == limit.empty()) continue;  // each pair once
                CAPTURE(to_terminal);
                CAPTURE(limit);
                CAPTURE((as == As::user));
                Bundle bundle;
                const std::string shared = make_shared(bundle);
                int ends[2];
                REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
                const UniqueFd reader(ends[0]), writer(ends[1]);
                const Terminal terminal(24, 80);
                const int stream = to_terminal ? terminal.slave() : writer.get();
                SpawnOptions spawn = as == As::user ? normal_user(bundle) : SpawnOptions{};
                spawn.fds = {{1, stream}, {2, stream}};
                std::vector<std::string> words =
                    bundle.verb({"sandbox", "--name", bundle.id(), "--result", shared + "/result"});
                if (!limit.empty()) words.insert(words.end(), {"--output-limit", limit});
                std::vector<std::string> brief_words = words;
                brief_words.insert(brief_words.end(), {"--timeout", brief(), "--", "yes"});
                CHECK(Process(brief_words, spawn).finish().status == 124);
                json result = json::parse(read_text(shared + "/result"));
                CHECK(result["status"] == "timed_out");
                CHECK(result["truncated"] == true);
                // Somebody who asks it to end is heard.
                words.insert(words.end(), {"--timeout", "100s", "--bind", shared + ":/shared", "--", "sh", "-c",
                                           "echo lost; echo runs > /shared/runs; exec yes"});
                Process job(words, spawn);
                CHECK(await_file(shared + "/runs") == "runs\n");
                job.signal(SIGTERM);
                CHECK(job.finish().status == 128 + SIGTERM);
                result = json::parse(read_text(shared + "/result"));
                CHECK(result["status"] == "signaled");
                CHECK(result["truncated"] == true);
            }
        }
    }
}

TEST_CASE("hostile: a supervisor that is stopped does not lengthen a life") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const As as : {As::root, As::user}) {
        CAPTURE((as == As::user));
        Bundle bundle;
        const std::string shared = make_shared(bundle);
        const Fuse fuse(bundle);
        Process job(bundle.verb({"sandbox", "--name", bundle.id(), "--timeout", brief(), "--result", shared + "/result",
                                 "--bind", shared + ":/shared", "--", "sh", "-c",
                                 "exec 3> /shared/fuse; echo runs; (setsid sleep 1000 &); sleep 1000"}),
                    as == As::user ? normal_user(bundle) : SpawnOptions{});
        CHECK(job.read_line() == "runs");
        job.signal(SIGSTOP);
        CHECK(fuse.await_end());
        job.signal(SIGCONT);
        CHECK(job.finish().status == 124);
        CHECK(json::parse(read_text(shared + "/result"))["status"] == "timed_out");
    }
}

TEST_CASE("hostile: what it makes in a directory of the host's belongs to nobody there, or to its caller") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const std::string shared = make_shared(bundle);
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        for (const char* user : {"0", "1000", "65535"}) {
            if (rootless && std::string(user) != "1000") continue;  // it has one id to give
            const Ended ended = run_job(bundle, {{"--bind", shared + ":/shared", "--user", user},
                                                 {"sh", "-c", "cp /bin/true /shared/left; chmod 6755 /shared/left"},
                                                 spawn});
            CHECK_MESSAGE(ended.status == 0, ended.err);
            struct stat info {};
            REQUIRE(::lstat((shared + "/left").c_str(), &info) == 0);
            constexpr uid_t kBeyondAccounts = 0x70000000;
            if (rootless) CHECK(info.st_uid == kNobodySpecial);
            else CHECK(info.st_uid >= kBeyondAccounts);
            fs::remove(shared + "/left");
        }
    }
}

TEST_CASE("hostile: a link in the place of the result is not followed") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const Host host(bundle);
        const std::string shared = make_shared(bundle);
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const std::string plant = "ln -s " + host.canary().string() + " /shared/result; ls /shared";
        const Ended ended = run_job(
            bundle, {{"--bind", shared + ":/shared", "--result", shared + "/result"}, {"sh", "-c", plant}, spawn});
        CHECK(ended.status == 0);
        CHECK(ended.out == "result\n");
        CHECK(fs::symlink_status(shared + "/result").type() == fs::file_type::regular);
        CHECK(json::parse(read_text(shared + "/result"))["status"] == "exited");
        host.check_unharmed(ended.out);
    }
}

TEST_CASE("hostile: a link in the place of a file to be copied out is copied as a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const Host host(bundle);
        const std::string shared = make_shared(bundle);
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const Ended ended = run_job(bundle, {{"--copy-out", "/workspace/report:" + shared + "/report"},
                                             {"ln", "-s", host.canary(), "/workspace/report"},
                                             spawn});
        CAPTURE(ended.err);
        if (fs::exists(fs::symlink_status(shared + "/report"))) CHECK(fs::is_symlink(shared + "/report"));
        host.check_unharmed(ended.err);
    }
}
