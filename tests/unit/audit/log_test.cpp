// Appending to the audit log: the chain, many writers, writers that die.
#include "audit/log.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "audit/head.hpp"
#include "base/sha256.hpp"
#include "json/json.hpp"
#include "logs.hpp"

using namespace pinfold;
namespace fs = std::filesystem;

namespace {

std::string member(const std::string& line, std::string_view key) {
    const AuditRecord record = parse_line(line).value();
    const Json* value = record.json.find(key);
    REQUIRE(value);
    std::string text = json_text(*value);
    text.pop_back();
    return text;
}

std::string refusal_of(const std::string& path) {
    const Result<AuditLog> log = AuditLog::open(path);
    REQUIRE_FALSE(log);
    return log.error().message + " hint: " + log.error().hint;
}

bool says(const std::string& message, const std::string& words) { return message.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("audit: a line tells the event, its members and the caller, and continues the one before") {
    const TestLog log(1);
    REQUIRE(AuditLog::open(log.path).value().append(
        {"exec", "we\"b", "abc", {{"args", json_list({"sh", "a\nb"})}, {"exit_code", "7"}}}));
    const std::vector<std::string> lines = log.lines();
    REQUIRE(lines.size() == 2);
    CHECK(member(lines[1], "seq") == "2");
    CHECK(member(lines[1], "event") == "\"exec\"");
    CHECK(member(lines[1], "id") == "\"we\\\"b\"");
    CHECK(member(lines[1], "config_sha256") == "\"abc\"");
    CHECK(member(lines[1], "exit_code") == "7");
    CHECK(member(lines[0], "prev") == "\"\"");
    CHECK(member(lines[1], "prev") == member(lines[0], "hash"));
    const Json caller = *parse_line(lines[1])->json.find("caller");
    CHECK(*caller.find("uid")->unsigned_integer() == ::getuid());
    CHECK(*caller.find("pid")->unsigned_integer() == uint64_t(::getppid()));
    std::string comm = read_file(concat("/proc/", ::getppid(), "/comm")).value();
    comm.pop_back();
    CHECK(*caller.find("program")->string() == comm);
}

TEST_CASE("audit: what is long is cut, and told by its size and digest") {
    const std::string args = json_list({"sh", "-c", std::string(100'000, '\x01'), "more"});
    const std::string error =
        json_quoted(concat(std::string(16370, 'x'), "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"));
    const std::string lines = json_array(std::vector(10000, 0), [](int) { return "{\"holds\":true}"; });
    const AuditEvent event = bounded(
        {"exec", std::string(20'000, 'i'), "abc", {{"args", args}, {"error", error}, {"lines", lines}, {"code", "7"}}});
    const std::string line = compose_line(event, caller_text(), {}).text;
    CHECK(line.size() < 4 * kMostOfText);
    const std::optional<AuditRecord> record = parse_line(line);
    REQUIRE(record);
    const Json::Array& kept = *record->json.find("args")->array();
    REQUIRE(kept.size() == 3);
    CHECK(*kept[1].string() == "-c");
    CHECK(kept[2].string()->size() > 1000);
    CHECK(record->json.find("args_cut")->number("bytes") == args.size());
    CHECK(record->json.find("args_cut")->text("sha256") == to_hex(sha256(args)));
    CHECK(record->json.find("error")->string()->starts_with("xxx"));
    CHECK(record->json.find("error_cut") != nullptr);
    CHECK(record->json.find("lines")->is_null());
    CHECK(record->json.find("lines_cut")->number("bytes") == lines.size());
    CHECK(record->json.find("id_cut")->number("bytes") == 20'002);
    CHECK(record->json.number("code") == 7);
    CHECK(record->json.find("code_cut") == nullptr);
    // What is not long stays as it is, also a receipt that is longer than a text may be.
    const AuditEvent plain{"receipt", "a", "", {{"lines", lines.substr(0, 30000) + "]"}, {"bundle", "\"/b\""}}};
    CHECK(bounded(plain).members.size() == 2);
}

TEST_CASE("audit: the hash is over the line without it") {
    const std::string line = TestLog(1).lines()[0];
    const size_t at = line.find(",\"hash\":\"");
    CHECK(line.substr(at + 9, 64) == to_hex(sha256(line.substr(0, at) + "}")));
    CHECK_FALSE(parse_line(""));
    CHECK_FALSE(parse_line("{}"));
    CHECK_FALSE(parse_line(line + " "));
}

TEST_CASE("audit: the end is found behind long lines") {
    const TestLog log(1);
    const std::string long_text(100'000, 'x');
    REQUIRE(AuditLog::open(log.path).value().append({"exec", "a", "", {{"args", json_list({long_text})}}}));
    log.append("b");
    CHECK(log.report().fault == "");
    CHECK(log.lines().size() == 3);
}

TEST_CASE("audit: only a file of one's own is written to") {
    const TestLog log(1);
    struct stat info {};
    REQUIRE(::stat(log.path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    fs::create_symlink(log.path, log.dir.file("link"));
    CHECK(says(refusal_of(log.dir.file("link")), "ELOOP"));
    CHECK(says(refusal_of(log.dir.file("no/log")), "make its directory first"));
    CHECK(says(refusal_of("/dev/null"), "is not a file"));
    REQUIRE(::chmod(log.path.c_str(), 0620) == 0);
    CHECK(says(refusal_of(log.path), "hint: chmod go-w " + log.path));
    REQUIRE(::chmod(log.path.c_str(), 0600) == 0);
    if (::geteuid() != 0) SKIP_TEST("needs root");
    REQUIRE(::chown(log.path.c_str(), 65000, 65000) == 0);
    CHECK(says(refusal_of(log.path), "hint: chown root:root " + log.path));
}

TEST_CASE("audit: a log that was moved away with its head is begun anew") {
    const TestLog log(3);
    fs::rename(log.path, log.path + ".1");
    fs::rename(log.path + ".head", log.path + ".1.head");
    log.append("x");
    CHECK(member(log.lines()[0], "seq") == "1");
    CHECK(log.report().fault == "");
    CHECK(verify_audit(log.path + ".1").value().fault == "");
}

TEST_CASE("audit: a writer that had to wait while the log was moved away writes to the new one") {
    const TestLog log(3);
    UniqueFd locked = open_at(AT_FDCWD, log.path, O_RDWR).value();
    REQUIRE(::flock(locked.get(), LOCK_EX) == 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        locked.reset();
        ::_exit(AuditLog::open(log.path).value().append({"kill", "c", "", {}}) ? 0 : 1);
    }
    // It has the old file open, and cannot get the lock.
    const auto waits = [&] {
        return std::ranges::any_of(fs::directory_iterator(concat("/proc/", pid, "/fd")), [&](const auto& entry) {
            std::error_code gone;
            return fs::read_symlink(entry, gone) == log.path;
        });
    };
    while (!waits()) ::sched_yield();
    fs::rename(log.path, log.path + ".1");
    fs::rename(log.path + ".head", log.path + ".1.head");
    locked.reset();
    int status = -1;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    CHECK(log.report().lines == 1);
    CHECK(verify_audit(log.path + ".1").value().lines == 3);
}

TEST_CASE("audit: twenty writers at once leave one chain") {
    const TestLog log(0);
    std::vector<pid_t> writers;
    for (int i = 0; i < 20; ++i) {
        const pid_t pid = ::fork();
        if (pid == 0) {
            bool good = true;
            for (int j = 0; j < 10; ++j) good = good && AuditLog::open(log.path).value().append({"kill", "c", "", {}});
            ::_exit(good ? 0 : 1);
        }
        writers.push_back(pid);
    }
    for (const pid_t pid : writers) {
        int status = -1;
        REQUIRE(::waitpid(pid, &status, 0) == pid);
        CHECK(status == 0);
    }
    const AuditReport report = log.report();
    CHECK(report.lines == 200);
    CHECK(report.fault == "");
    CHECK(report.remarks.empty());
}

TEST_CASE("audit: wherever a write is cut short, the next event goes on and the cut is told") {
    const TestLog log(3);
    const std::string before = log.text();
    const ChainEnd end = parse_line(log.lines().back())->end;
    const ChainedLine next = compose_line({"kill", "x", "", {}}, caller_text(), end);
    const std::string whole = next.text + "\n";
    for (size_t cut = 0; cut <= whole.size(); ++cut) {
        CAPTURE(cut);
        log.write(before + whole.substr(0, cut));
        REQUIRE(write_head(log.path, {end, next.end.hash}));
        const bool in_part = cut > 0 && cut < next.text.size();
        const AuditReport cut_off = log.report();
        CHECK(cut_off.fault == "");
        CHECK(cut_off.remarks.size() == (in_part ? 1 : 0));
        log.append("after");
        const AuditReport repaired = log.report();
        CHECK(repaired.fault == "");
        REQUIRE(repaired.remarks.size() == (in_part ? 1 : 0));
        if (in_part) CHECK(repaired.remarks[0] == "line 4 was cut short by a crash, as line 5 says");
        CHECK(repaired.lines == (in_part ? 6 : cut == 0 ? 4 : 5));
    }
}

TEST_CASE("audit: writers that are killed at any moment leave a log that is in order") {
    const TestLog log(1);
    for (int i = 0; i < 100; ++i) {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        const UniqueFd progress(ends[0]);
        UniqueFd told(ends[1]);
        const pid_t pid = ::fork();
        if (pid == 0) {
            while (AuditLog::open(log.path).value().append({"kill", "c", "", {}})) {
                if (::write(told.get(), ".", 1) != 1) break;
            }
            ::_exit(1);
        }
        told.reset();
        char dot = 0;
        CHECK(::read(progress.get(), &dot, 1) == 1);
        ::usleep(useconds_t(i * 3));  // it is in the middle of another one, at another place each time
        ::kill(pid, SIGKILL);
        int status = 0;
        REQUIRE(::waitpid(pid, &status, 0) == pid);
        REQUIRE(WIFSIGNALED(status));
        REQUIRE(log.report().fault == "");
    }
    log.append("after");
    const AuditReport report = log.report();
    CHECK(report.fault == "");
    CHECK(report.lines > 100);
}
