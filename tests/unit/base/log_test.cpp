// The logger, seen from outside: what reaches standard error and what reaches the file.
#include "base/log.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <regex>
#include <string>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using testing::TempDir;

namespace {

// What the job writes to standard error. It runs in a child process: the logger is a global, and each test
// wants a fresh one.
std::string stderr_of(const std::function<void()>& job) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::dup2(writer.get(), STDERR_FILENO);
        job();
        ::_exit(0);
    }
    writer.reset();
    const Result<std::string> text = read_all(reader.get(), "standard error");
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
    REQUIRE(text);
    return *text;
}

// Standard error when a file takes the log; the file is left for the test to read.
std::string stderr_with(const LogOptions& options, const std::function<void()>& job) {
    return stderr_of([&] {
        if (!open_log(options)) ::_exit(1);
        job();
    });
}

bool matches(const std::string& text, const char* pattern) { return std::regex_match(text, std::regex(pattern)); }

constexpr const char* kTime = R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z)";

}  // namespace

TEST_CASE("log: an error reaches standard error, its hint on a line of its own") {
    const std::string text = stderr_of([] { log_error(plain_error("create 'a': no rootfs").with_hint("make one")); });
    CHECK(text == "pinfold: create 'a': no rootfs\nhint: make one\n");
}

TEST_CASE("log: an error without a hint is one line") {
    CHECK(stderr_of([] { log_error(plain_error("gone")); }) == "pinfold: gone\n");
}

TEST_CASE("log: a warning goes to standard error where there is no file") {
    CHECK(stderr_of([] { log_warning("careful"); }) == "pinfold: warning: careful\n");
}

TEST_CASE("log: debug messages are silent until they are asked for") {
    CHECK(stderr_of([] { log_debug("quiet"); }).empty());
    CHECK(stderr_of([] {
              if (debug_enabled()) ::_exit(1);
          }).empty());
    const std::string text = stderr_with({.debug = true, .file = {}, .json = false}, [] { log_debug("step mounts"); });
    CHECK(matches(text, "pinfold: debug: \\[ *\\d+\\.\\d{3} ms\\] step mounts\n"));
}

TEST_CASE("log: a file takes warnings; an error goes to both places") {
    const TempDir dir;
    const LogOptions options{.debug = false, .file = dir.file("log"), .json = false};
    const std::string text = stderr_with(options, [] {
        log_warning("say \"hi\"");
        log_error(plain_error("broken").with_hint("mend it"));
    });
    CHECK(text == "pinfold: broken\nhint: mend it\n");
    const std::string time = concat("time=\"", kTime, "\" ");
    const std::string pattern = concat(time, R"(level=warning msg="say \\"hi\\"")", "\n", time,
                                       R"re(level=error msg="broken \(hint: mend it\)")re", "\n");
    CHECK(matches(*read_file(options.file), pattern.c_str()));
}

TEST_CASE("log: the JSON form is one object per line, whatever the message holds") {
    const TempDir dir;
    const LogOptions options{.debug = false, .file = dir.file("log"), .json = true};
    stderr_with(options, [] { log_warning("a\nb\xff"); });
    const std::string pattern =
        concat(R"(\{"level":"warning","msg":"a\\nb)", "\xef\xbf\xbd", R"(","time":")", kTime, R"("\})", "\n");
    CHECK(matches(*read_file(options.file), pattern.c_str()));
}

TEST_CASE("log: an existing file is continued, not cut") {
    const TempDir dir;
    const LogOptions options{.debug = false, .file = dir.file("log"), .json = true};
    stderr_with(options, [] { log_warning("first"); });
    stderr_with(options, [] { log_warning("second"); });
    const std::string text = *read_file(options.file);
    CHECK(text.find("first") != std::string::npos);
    CHECK(text.find("second") != std::string::npos);
}

TEST_CASE("log: a file that cannot be opened is named") {
    const std::string text = stderr_of([] {
        const Result<void> opened = open_log({.debug = false, .file = "/nowhere/log", .json = false});
        if (!opened) log_error(opened.error());
    });
    CHECK(text == "pinfold: open log file '/nowhere/log': does not exist (ENOENT)\n");
}
