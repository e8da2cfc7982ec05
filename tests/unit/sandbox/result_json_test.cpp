// A result comes back as it was sent, whatever bytes a job has printed; what is not a result is refused.
#include "sandbox/result_json.hpp"

#include <numeric>

#include "json/json.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

SandboxResult full_result() {
    SandboxResult result;
    result.status = SandboxStatus::oom_killed;
    result.signal = 9;
    result.truncated = true;
    result.wall_seconds = 1.25;
    result.cpu_seconds = 0.5;
    result.peak_memory_bytes = UINT64_MAX;
    result.peak_processes = 2;
    result.read_bytes = 3;
    result.written_bytes = 4;
    result.oom_kills = 1;
    result.denied = {{"mount", 7, {1, 0xffffffffffffffff, 3, 4, 5, 6}, "a \"program\""}};
    result.stopped_by = "memory_mb";
    result.limits = {{"memory_mb", "512", "cgroup2", "536870912", 3},
                     {"cpu_cores", "0.5", "", ""},
                     {"network_enabled", "false", "namespace", "net:[1]"}};
    result.receipt_sha256 = "00ff";
    result.receipt = {{"no_new_privs", "1", "0", false}};
    result.landlock_abi = 4;
    result.copy_failures = {{"out/*", "/srv/out", "too large", "hint"}, {"none", "here", "is not there", ""}};
    result.published = {{"127.0.0.1", 40321, 80}, {"::1", 65535, 1}};
    result.error = "\"stdout\": \"\", \"stderr\": \"\"";  // as a member of the document looks
    result.hint = "hint";
    return result;
}

// All that a result holds is in its document.
void check_same(const SandboxResult& got, const SandboxResult& sent) {
    CHECK(to_json(got) == to_json(sent));
    CHECK(got.out == sent.out);
    CHECK(got.err == sent.err);
}

std::string every_byte() {
    std::string bytes(256, '\0');
    std::iota(bytes.begin(), bytes.end(), '\0');
    return bytes;
}

// They differ in where a piece of the document ends: between characters, or at any place in one.
std::vector<std::string> long_texts() {
    std::vector<std::string> texts;
    for (size_t shift = 0; shift < 4; ++shift) {
        std::string& text = texts.emplace_back(shift, 'x');
        for (int i = 0; i < 20'000; ++i) text += "\xf0\x9f\x90\x91";
    }
    return texts;
}

std::string long_bytes() {
    std::string bytes;
    for (int i = 0; i < 300; ++i) bytes += every_byte();
    return bytes;
}

}  // namespace

TEST_CASE("result: what is written is read back, all of it") {
    const SandboxResult sent = full_result();
    const Result<SandboxResult> got = parse_result(to_json(sent));
    REQUIRE_MESSAGE(got, got.error().message);
    check_same(*got, sent);
    CHECK(got->status == SandboxStatus::oom_killed);
    CHECK(got->signal == 9);
    CHECK_FALSE(got->exit_code);
    CHECK(got->peak_memory_bytes == UINT64_MAX);
    REQUIRE(got->denied);
    CHECK(got->denied->at(0).arguments[1] == UINT64_MAX);
    CHECK(got->denied->at(0).program == "a \"program\"");
    CHECK(got->stopped_by == "memory_mb");
    CHECK(got->limits.at(0).value == "536870912");
    CHECK(got->limits.at(0).hit == 3);
    CHECK(got->limits.at(1).enforced_by.empty());
    CHECK(got->limits.at(1).asked == "0.5");
    CHECK_FALSE(got->limits.at(1).hit);
    CHECK(got->limits.at(2).asked == "false");
    CHECK(got->limits.at(2).value == "net:[1]");
    CHECK(got->receipt_sha256 == "00ff");
    CHECK_FALSE(got->receipt.at(0).holds);
    CHECK(got->copy_failures.at(0).destination == "/srv/out");
    CHECK(got->copy_failures.at(1).hint.empty());
    REQUIRE(got->published.size() == 2);
    CHECK(got->published.at(0).host == 40321);
    CHECK(got->published.at(1).address == "::1");
    CHECK(got->published.at(1).inside == 1);
    CHECK(got->error == sent.error);
}

TEST_CASE("result: denials that nobody has counted are not the same as none") {
    SandboxResult unknown;
    unknown.denied.reset();
    CHECK_FALSE(parse_result(to_json(unknown))->denied);
    CHECK(parse_result(to_json(SandboxResult()))->denied->empty());
}

TEST_CASE("result: every byte that a job prints arrives unchanged, in the document and between processes") {
    std::vector<std::string> outputs = long_texts();
    outputs.insert(outputs.end(), {long_bytes(), "", "plain\n", every_byte(), "\xff", "\xef\xbf\xbd",
                                   "\xff\xef\xbf\xbd", "\xc3", std::string(1, '\0'), "\"}\\", "3 4\nabc"});
    for (const std::string& output : outputs) {
        CAPTURE(output.substr(0, 20));
        SandboxResult sent = full_result();
        sent.out = output;
        sent.err = output.substr(output.size() / 2);
        const Result<SandboxResult> read = parse_result(to_json(sent));
        REQUIRE_MESSAGE(read, read.error().message);
        check_same(*read, sent);
        const Result<SandboxResult> received = from_wire(to_wire(sent));
        REQUIRE_MESSAGE(received, received.error().message);
        check_same(*received, sent);
    }
}

TEST_CASE("result: a long text is text all through, wherever its pieces end") {
    for (const std::string& text : long_texts()) {
        SandboxResult result;
        result.out = text;
        const std::string document = to_json(result);
        CAPTURE(text.substr(0, 4));
        CHECK(document.find("stdout_base64") == std::string::npos);
        CHECK(document.find(text) != std::string::npos);
    }
}

TEST_CASE("result: text is text, and only what is none has a second form") {
    SandboxResult result;
    result.out = "gr\xc3\xbc\xc3\x9f\x65";
    result.err = "\xff";
    const Result<Json> document = parse_json(to_json(result), "result");
    REQUIRE(document);
    CHECK(document->text("stdout") == result.out);
    CHECK(document->find("stdout_base64") == nullptr);
    CHECK(document->text("stderr") == "\xef\xbf\xbd");
    CHECK(document->text("stderr_base64") == "/w==");
}

TEST_CASE("result: an answer that was cut short anywhere is no answer") {
    SandboxResult sent = full_result();
    sent.out = "out";
    sent.err = "err";
    const std::string wire = to_wire(sent);
    REQUIRE(from_wire(wire));
    const size_t last = wire.rfind('}');
    for (size_t size = 0; size <= last; ++size) {
        CAPTURE(size);
        CHECK_FALSE(from_wire(std::string_view(wire).substr(0, size)));
    }
    // Sizes whose sum is none at all, before what would be an answer without any output.
    const std::string bare = to_json(sent);
    REQUIRE(from_wire("0 0\n" + bare));
    CHECK_FALSE(from_wire("18446744073709551615 1\n" + bare));
    for (const std::string sizes :
         {"9999 3\n", "3 9999\n", "18446744073709551615 1\n", "-1 3\n", "3\n", "1 2 3\n", "\n"}) {
        CAPTURE(sizes);
        CHECK_FALSE(from_wire(sizes + wire.substr(wire.find('\n') + 1)));
    }
}

TEST_CASE("result: a document with values that no job can have is refused by name") {
    const std::string usage = R"("usage": {"wall_seconds": 1})";
    CHECK(parse_result(R"({"status": "exited", "exit_code": 255, )" + usage + "}"));
    struct Row {
        std::string document;
        const char* named;
    };
    const Row rows[] = {
        {R"({"status": "exited", "exit_code": 256, )" + usage + "}", "exit_code"},
        {R"({"status": "exited", "exit_code": -1, )" + usage + "}", "exit_code"},
        {R"({"status": "signaled", "signal": 1000, )" + usage + "}", "signal"},
        {R"({"status": "finished", )" + usage + "}", "status"},
        {"{" + usage + "}", "status"},
        {R"({"status": "exited"})", "usage"},
        {R"({"status": "exited", "usage": {}})", "usage.wall_seconds"},
    };
    for (const Row& row : rows) {
        const Result<SandboxResult> result = parse_result(row.document);
        REQUIRE_FALSE(result);
        CHECK_MESSAGE(result.error().message.find(row.named) != std::string::npos, result.error().message);
    }
}
