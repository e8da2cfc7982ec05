// Hostile jobs whose end, output or files could mislead whoever reads the result.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>

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

// What the jobs below have in common, which run side by side, since they wait most of the time. All of them have to be
// checked before one of them goes.
struct Beside {
    explicit Beside(As as)
        : name(as == As::user ? "as a normal user" : "as root"),
          shared(make_shared(bundle)),
          spawn(as == As::user ? normal_user(bundle) : SpawnOptions{}) {}

    void start(const std::vector<std::string>& words) {
        std::vector<std::string> line = bundle.verb(
            {"sandbox", "--name", bundle.id(), "--result", shared + "/result", "--bind", shared + ":/shared"});
        line.insert(line.end(), words.begin(), words.end());
        process.emplace(line, spawn);
    }
    json result() const { return json::parse(read_text(shared + "/result")); }

    std::string name;
    Bundle bundle;
    std::string shared;
    SpawnOptions spawn;
    std::optional<Process> process;
};

// Both streams lead to one pipe, which gets full in the turn of either of them: it holds one page more or less.
class Flood : Beside {
public:
    Flood(size_t already, As as) : Beside(as), already_(already), fuse_(bundle) {
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reader_ = UniqueFd(ends[0]);
        const UniqueFd writer(ends[1]);
        REQUIRE(::write(writer.get(), std::string(already, 'x').data(), already) == ssize_t(already));
        spawn.fds = {{1, writer.get()}, {2, writer.get()}};
        start({"--output-limit", "1m", "--timeout", brief(), "--", "sh", "-c",
               "exec 3> /shared/fuse; yes & yes >&2 & wait"});
    }
    void check() {
        INFO(name, ", ", already_, " bytes before");
        CHECK(fuse_.await_end());  // the deadline is kept, though nobody has read a byte
        CHECK(drain(reader_.get()).size() <= already_ + (1 << 20));
        CHECK(process->finish().status == 124);
    }

private:
    size_t already_;
    Fuse fuse_;
    UniqueFd reader_;
};

// A job whose streams lead to a pipe, or to a terminal, that nobody reads.
class Untaken : Beside {
public:
    Untaken(bool to_terminal, const std::string& limit, As as) : Beside(as), terminal_(24, 80), limit_(limit) {
        name += to_terminal ? ", to a terminal" : ", to a pipe";
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        reader_ = UniqueFd(ends[0]);
        writer_ = UniqueFd(ends[1]);
        const int stream = to_terminal ? terminal_.slave() : writer_.get();
        spawn.fds = {{1, stream}, {2, stream}};
    }
    void start(std::vector<std::string> words) {
        if (!limit_.empty()) words.insert(words.begin(), {"--output-limit", limit_});
        Beside::start(words);
    }
    void terminate() {
        CHECK(await_file(shared + "/runs") == "runs\n");
        process->signal(SIGTERM);
    }
    void check_end(int status, const char* told) {
        INFO(name);
        CHECK(process->finish().status == status);
        CHECK(result()["status"] == told);
        CHECK(result()["truncated"] == true);
    }

private:
    Terminal terminal_;
    std::string limit_;
    UniqueFd reader_;
    UniqueFd writer_;
};

// A job whose supervisor does nothing from its start on.
class Stopped : Beside {
public:
    explicit Stopped(As as) : Beside(as), fuse_(bundle) {
        start({"--timeout", brief(), "--", "sh", "-c",
               "exec 3> /shared/fuse; echo runs; (setsid sleep 1000 &); sleep 1000"});
        CHECK(process->read_line() == "runs");
        process->signal(SIGSTOP);
    }
    void check() {
        INFO(name);
        CHECK(fuse_.await_end());
        process->signal(SIGCONT);
        CHECK(process->finish().status == 124);
        CHECK(result()["status"] == "timed_out");
    }

private:
    Fuse fuse_;
};

}  // namespace

TEST_CASE("hostile: programs that are none") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const End never_ran{"setup_failed", 126}, not_there{"setup_failed", 127};
    run_attacks({
        {.name = "a text", .command = {"/etc/hosts"}, .end = never_ran},
        {.name = "a directory", .command = {"/workspace"}, .end = never_ran},
        {.name = "nothing at all", .command = {"/nonexistent"}, .end = not_there},
        {.name = "an empty name", .command = {""}, .end = not_there},
        {.name = "an empty script", .options = {"--lang", "sh", "-"}, .command = {}},
    });
}

TEST_CASE("hostile: scripts with odd names are read, and stored by a plain one") {
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
    const Bundle bundle;
    write_text(bundle.host() / "own-name_1.mjs", "echo $0\n");
    CHECK(run_job(bundle, {{"--lang", "sh", bundle.host() / "own-name_1.mjs"}, {}, {}}).out == "own-name_1.mjs\n");
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

TEST_CASE("hostile: a flood for a reader that does not read") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    std::vector<std::unique_ptr<Flood>> floods;
    for (const size_t already : {0, 4096}) {
        for (const As as : {As::root, As::user}) floods.push_back(std::make_unique<Flood>(already, as));
    }
    for (const auto& flood : floods) flood->check();
}

TEST_CASE("hostile: output that nobody ever takes does not lengthen a life") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    std::vector<std::unique_ptr<Untaken>> jobs;
    jobs.push_back(std::make_unique<Untaken>(false, "", As::user));  // each pair of these once
    jobs.push_back(std::make_unique<Untaken>(false, "1m", As::root));
    jobs.push_back(std::make_unique<Untaken>(true, "", As::root));
    jobs.push_back(std::make_unique<Untaken>(true, "1m", As::user));
    for (const auto& job : jobs) job->start({"--timeout", brief(), "--", "yes"});
    for (const auto& job : jobs) job->check_end(124, "timed_out");
    // Somebody who asks it to end is heard.
    for (const auto& job : jobs)
        job->start({"--timeout", "100s", "--", "sh", "-c", "echo lost; echo runs > /shared/runs; exec yes"});
    for (const auto& job : jobs) job->terminate();
    for (const auto& job : jobs) job->check_end(128 + SIGTERM, "signaled");
}

TEST_CASE("hostile: a supervisor that is stopped does not lengthen a life") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Stopped as_root(As::root), as_user(As::user);
    as_root.check();
    as_user.check();
}

TEST_CASE("hostile: what it makes in a directory of the host's is no program with the rights of its owner") {
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
            CHECK_MESSAGE(ended.err.find("not permitted") != std::string::npos, ended.err);
            struct stat info {};
            REQUIRE(::lstat((shared + "/left").c_str(), &info) == 0);
            CHECK(info.st_uid == (rootless ? kNobodySpecial : 0));
            CHECK((info.st_mode & 06000) == 0);
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
