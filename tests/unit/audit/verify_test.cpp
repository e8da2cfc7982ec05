// What is done to an audit log is found, and the next event does not cover it up.
#include "audit/verify.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "audit/head.hpp"
#include "logs.hpp"

using namespace pinfold;
namespace fs = std::filesystem;

namespace {

using Lines = std::vector<std::string>;

struct Tampering {
    const char* what;
    std::function<void(Lines&)> change;
    std::string fault;
};

std::string changed(std::string line, const std::string& from, const std::string& to) {
    const size_t at = line.find(from);
    REQUIRE(at != std::string::npos);
    return line.replace(at, from.size(), to);
}

// A line that fits in all but the head.
std::string forged_after(const std::string& line) {
    return compose_line({"delete", "forged", "", {}}, caller_text(), parse_line(line)->end).text;
}

const Tampering kTamperings[] = {
    {"a byte in the middle", [](Lines& lines) { lines[2] = changed(lines[2], "c2", "d2"); },
     "line 3 was changed or added: its hash does not fit"},
    {"a byte of the last line", [](Lines& lines) { lines[4] = changed(lines[4], "c4", "d4"); },
     "line 5 was changed or added: its hash does not fit"},
    {"a digit of a hash", [](Lines& lines) { lines[1].end()[-3] = lines[1].end()[-3] == '0' ? '1' : '0'; },
     "line 2 was changed or added: its hash does not fit"},
    {"the first line removed", [](Lines& lines) { lines.erase(lines.begin()); },
     "lines were removed before line 1: it is number 2 instead of 1"},
    {"two in the middle removed", [](Lines& lines) { lines.erase(lines.begin() + 1, lines.begin() + 3); },
     "lines were removed before line 2: it is number 4 instead of 2"},
    {"the last line removed", [](Lines& lines) { lines.pop_back(); },
     "lines were removed after line 4: the head file knows of 5"},
    {"the last two removed", [](Lines& lines) { lines.resize(3); },
     "lines were removed after line 3: the head file knows of 5"},
    {"two swapped", [](Lines& lines) { std::swap(lines[1], lines[2]); },
     "line 2 is out of order: number 2 comes after number 3"},
    {"one repeated", [](Lines& lines) { lines.insert(lines.begin() + 2, lines[1]); },
     "line 3 was inserted: its number is 2, which was there before"},
    {"one forged in between", [](Lines& lines) { lines.insert(lines.begin() + 2, forged_after(lines[1])); },
     "line 4 was inserted: its number is 3, which was there before"},
    {"one replaced", [](Lines& lines) { lines[2] = forged_after(lines[1]); },
     "line 4 was replaced or inserted: it does not continue the one before"},
    {"the last replaced", [](Lines& lines) { lines[4] = forged_after(lines[3]); },
     "line 5 was replaced: the head file knows another one"},
    {"one forged at the end", [](Lines& lines) { lines.push_back(forged_after(lines[4])); },
     "line 6 was added: the head file knows of 5 only"},
    {"nonsense at the end", [](Lines& lines) { lines.push_back("{\"seq\":6}"); },
     "line 6 was changed or added: its hash does not fit"},
    {"an empty line", [](Lines& lines) { lines.insert(lines.begin() + 1, ""); },
     "line 2 was changed or added: its hash does not fit"},
};

}  // namespace

TEST_CASE("audit verify: a log as it was written is whole") {
    const TestLog log;
    const AuditReport report = log.report();
    CHECK(report.lines == 5);
    CHECK(report.fault == "");
    CHECK(report.remarks.empty());
    CHECK(TestLog(1).report().fault == "");
    CHECK_FALSE(verify_audit(log.dir.file("missing")));
}

TEST_CASE("audit verify: each change is found and named") {
    for (const Tampering& tampering : kTamperings) {
        CAPTURE(tampering.what);
        const TestLog log;
        Lines lines = log.lines();
        tampering.change(lines);
        log.write_lines(lines);
        CHECK(log.report().fault == tampering.fault);
    }
}

TEST_CASE("audit verify: a later event does not cover a change up") {
    for (const Tampering& tampering : kTamperings) {
        CAPTURE(tampering.what);
        const TestLog log;
        Lines lines = log.lines();
        tampering.change(lines);
        log.write_lines(lines);
        log.append("later");
        log.append("still later");
        CHECK(log.report().fault != "");
    }
}

TEST_CASE("audit verify: a missing or damaged head is found, also after later events") {
    for (const bool damaged : {false, true}) {
        CAPTURE(damaged);
        const TestLog log;
        fs::remove(log.path + ".head");
        if (damaged) std::ofstream(log.path + ".head") << "{";
        CHECK(log.report().fault == "the head file is missing or damaged: lines may have been removed from the end");
        log.append("later");
        CHECK(log.report().fault ==
              "something was removed or changed before line 6: the log did not end as it was left");
    }
}

TEST_CASE("audit verify: an emptied or removed log is found") {
    const TestLog log;
    log.write("");
    CHECK(log.report().fault == "lines were removed after line 0: the head file knows of 5");
    fs::remove(log.path);
    log.append("later");
    CHECK(log.report().fault == "something was removed or changed before line 1: the log did not end as it was left");
}

TEST_CASE("audit verify: a crash is no excuse for other text than was announced to be there") {
    const TestLog log;
    const ChainEnd end = parse_line(log.lines().back())->end;
    Lines lines = log.lines();
    lines[1] = changed(lines[1], "c1", "d1");
    log.write_lines(lines);
    REQUIRE(write_head(log.path, {end, std::string(64, 'a')}));
    CHECK(log.report().fault == "line 2 was changed or added: its hash does not fit");
    lines.pop_back();
    log.write_lines(lines);
    log.append("later");
    CHECK(log.report().fault != "");
}

TEST_CASE("audit verify: what a crash has left is part of the chain, too") {
    const TestLog log(2);
    const ChainEnd end = parse_line(log.lines().back())->end;
    REQUIRE(write_head(log.path, {end, std::string(64, 'a')}));
    log.write(log.text() + "{\"seq\":3,\"ti");
    log.append("after");
    REQUIRE(log.report().fault == "");
    Lines lines = log.lines();
    lines[2] = changed(lines[2], "ti", "to");
    log.write_lines(lines);
    CHECK(log.report().fault == "line 3 was changed or added: its hash does not fit");
    lines.erase(lines.begin() + 2);
    log.write_lines(lines);
    CHECK(log.report().fault == "text was removed before line 3, which tells of a line that was cut short");
}
