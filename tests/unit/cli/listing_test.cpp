// list and ps, with real states and real processes: what is printed is read by people, and by programs.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "state/store.hpp"
#include "support/sleeper.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::Sleeper;
using pinfold::testing::TempDir;

namespace {

StateDir record(const TempDir& root, const std::string& id, const std::string& bundle, pid_t pid) {
    ContainerRecord record;
    record.id = id;
    record.bundle = bundle;
    record.created = "2026-01-02T03:04:05Z";
    record.owner = 7;
    Result<StateDir> state = StateDir::create(root.path(), record, "{}");
    REQUIRE_MESSAGE(state, state.error().message);
    if (pid != 0) REQUIRE(state->record_init(pid));
    return std::move(state).value();
}

struct Printed {
    std::string text;
    Error error;  // empty: none
};

// What a verb writes to standard output.
template <class Call>
Printed printed_by(const Call& call) {
    const TempDir dir;
    std::fflush(stdout);
    const UniqueFd before(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    const UniqueFd file(::open(dir.file("out").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    REQUIRE(::dup2(file.get(), STDOUT_FILENO) >= 0);
    const Result<int> called = call();
    std::fflush(stdout);
    REQUIRE(::dup2(before.get(), STDOUT_FILENO) >= 0);
    return {read_file(dir.file("out")).value(), called ? Error{} : called.error()};
}

struct Line {
    explicit Line(const TempDir& root) : gate(Gate::open("list")) {
        REQUIRE_MESSAGE(gate, gate.error().message);
        line.global.root = root.path();
        line.global.root_is_default = false;
        line.gate = &*gate;
    }
    Result<Gate> gate;
    CommandLine line;
};

Printed list(const TempDir& root, const ListOptions& options) {
    const Line line(root);
    return printed_by([&] { return verb_list(options, line.line); });
}

Printed ps(const TempDir& root, const PsOptions& options) {
    const Line line(root);
    return printed_by([&] { return verb_ps(options, line.line); });
}

}  // namespace

TEST_CASE("list: columns are as wide as their widest entry, and no entry can leave its line") {
    const TempDir root;
    const Sleeper process;
    const StateDir web = record(root, "web", "/b\n\x1b[2J", 0);
    const StateDir longer = record(root, "a-much-longer-name", "/bundle", process.pid());
    const Printed listed = list(root, {});
    const std::vector<std::string_view> lines = split(listed.text, '\n');
    REQUIRE(lines.size() == 4);  // the last is empty
    CHECK(lines[0].starts_with("ID                  PID"));
    CHECK(lines[1].starts_with(concat("a-much-longer-name  ", process.pid(), ' ')));
    CHECK(lines[2].starts_with("web                 0 "));
    for (const std::string column : {"PID", "STATUS", "BUNDLE", "CREATED", "OWNER"}) {
        const size_t at = lines[0].find(column);
        CAPTURE(column);
        for (const std::string_view line : lines) {
            if (line.empty()) continue;
            CHECK(line[at] != ' ');
            CHECK(line[at - 1] == ' ');
        }
    }
    CHECK(lines[1].find(" running ") != std::string_view::npos);
    CHECK(lines[2].find(" creating ") != std::string_view::npos);
    CHECK(lines[1].ends_with("2026-01-02T03:04:05Z  #7"));
    CHECK(listed.text.find('\x1b') == std::string::npos);
}

TEST_CASE("list: ids alone, JSON, and nothing at all") {
    const TempDir root;
    CHECK(list(root, {.json = true}).text == "null\n");
    CHECK(list(root, {.quiet = true}).text.empty());
    const StateDir two = record(root, "two", "/b", 0);
    const StateDir one = record(root, "one", "/b\"\n", 0);
    CHECK(list(root, {.quiet = true}).text == "one\ntwo\n");
    const Printed printed = list(root, {.json = true});
    const Result<Json> json = parse_json(printed.text, "list");
    REQUIRE_MESSAGE(json, json.error().message);
    REQUIRE(json->array());
    REQUIRE(json->array()->size() == 2);
    CHECK(json->array()->at(0).text("id") == "one");
    CHECK(json->array()->at(0).text("bundle") == "/b\"\n");
    CHECK(json->array()->at(0).text("created") == "2026-01-02T03:04:05Z");
}

TEST_CASE("list: a directory that the caller names must be there, the default one need not") {
    const TempDir dir;
    const TempDir elsewhere;
    Line line(elsewhere);
    line.line.global.root = dir.file("not-there");
    const auto call = [&] { return verb_list({}, line.line); };
    CHECK(printed_by(call).error.message.find("not-there") != std::string::npos);
    line.line.global.root_is_default = true;
    const Printed empty = printed_by(call);
    CHECK(empty.error.message.empty());
    CHECK(empty.text.starts_with("ID"));
}

TEST_CASE("ps: the lines of the container's processes, and of nobody else's") {
    if (::access("/bin/ps", X_OK) != 0 && ::access("/usr/bin/ps", X_OK) != 0) SKIP_TEST("ps is missing");
    const TempDir root;
    const Sleeper process, other;
    const StateDir web = record(root, "web", "/b", process.pid());
    const StateDir ended = record(root, "ended", "/b", 0);
    const std::string pid = std::to_string(process.pid());
    CHECK(ps(root, {.id = "web", .json = true}).text == concat('[', pid, "]\n"));
    CHECK(ps(root, {.id = "ended", .json = true}).text == "[]\n");
    const Printed chosen = ps(root, {.id = "web", .args = {"-e", "-o", "ppid,pid,args"}});
    const std::vector<std::string_view> lines = split(chosen.text, '\n');
    REQUIRE_MESSAGE(lines.size() == 3, chosen.text << chosen.error.message);
    CHECK(has_word(std::string(lines[0]), "PID"));
    CHECK(has_word(std::string(lines[1]), pid));
    CHECK(ps(root, {.id = "web"}).text.starts_with("UID"));
    // After a column with blanks in it no number of columns says where the PID is.
    const Printed guess = ps(root, {.id = "web", .args = {"-e", "-o", "args,pid"}});
    CHECK(guess.error.hint.find("PID column come first") != std::string::npos);
    CHECK(ps(root, {.id = "web", .args = {"-e", "-o", "args"}}).error.message.find("no PID column") !=
          std::string::npos);
    CHECK(ps(root, {.id = "web", .args = {"--no-such-option"}}).error.message.find("failed") != std::string::npos);
}
