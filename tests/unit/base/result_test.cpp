// Result and TRY: the value arrives, or the error does, with one clause per layer.
#include "pinfold/result.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

Result<int> half(int number) {
    if (number % 2 != 0) return plain_error("odd number");
    return number / 2;
}

Result<int> quarter(int number) {
    const int first = TRY(half(number));
    return TRY_IN("second half", half(first));
}

Result<void> require_even(int number) {
    TRY(half(number));
    return {};
}

Result<std::string> all_or_nothing(int number, int& reached) {
    TRY(require_even(number));
    ++reached;
    return std::string("done");
}

Result<std::unique_ptr<int>> boxed(int number) { return std::make_unique<int>(number); }

Result<int> unboxed(int number) {
    const std::unique_ptr<int> box = TRY(boxed(number));
    return *box;
}

}  // namespace

TEST_CASE("result: holds a value") {
    const Result<int> result = half(8);
    REQUIRE(result);
    CHECK(*result == 4);
}

TEST_CASE("result: holds an error") {
    const Result<int> result = half(7);
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "odd number");
    CHECK(result.error().code == 0);
    CHECK(result.error().hint.empty());
}

TEST_CASE("result: a void one is a success until it is given an error") {
    CHECK(Result<void>());
    CHECK_FALSE(Result<void>(plain_error("no")));
}

TEST_CASE("result: an error of a Result<Error>-like pair of strings is not mistaken for a value") {
    const Result<std::string> value = std::string("text");
    const Result<std::string> error = plain_error("text");
    CHECK(value);
    CHECK_FALSE(error);
}

TEST_CASE("result: TRY hands the value on, also one that only moves") {
    REQUIRE(quarter(12));
    CHECK(*quarter(12) == 3);
    REQUIRE(unboxed(5));
    CHECK(*unboxed(5) == 5);
}

TEST_CASE("result: TRY returns the error and runs nothing after it") {
    int reached = 0;
    CHECK(quarter(3).error().message == "odd number");
    CHECK(all_or_nothing(3, reached).error().message == "odd number");
    CHECK(reached == 0);
    CHECK(all_or_nothing(4, reached));
    CHECK(reached == 1);
}

TEST_CASE("result: TRY_IN puts its clause in front") { CHECK(quarter(6).error().message == "second half: odd number"); }

TEST_CASE("error: clauses come outermost first and keep code and hint") {
    const Error error =
        errno_error(EBUSY, "mount /proc").with_hint("unmount it").within("mounts[2]").within("create 'a'");
    CHECK(error.message == "create 'a': mounts[2]: mount /proc: device or resource busy (EBUSY)");
    CHECK(error.code == EBUSY);
    CHECK(error.hint == "unmount it");
}

TEST_CASE("error: errno is read at the call") {
    errno = EINVAL;
    const Error error = errno_error("prctl");
    CHECK(error.code == EINVAL);
    CHECK(error.message == "prctl: invalid argument (EINVAL)");
}

TEST_CASE("error: an errno without a name keeps its number") {
    CHECK(errno_words(9999) == "unknown error (errno 9999)");
}

TEST_CASE("error: words that engines take for a missing executable are never used") {
    for (const int code : {ENOENT, EACCES, EPERM}) {
        const std::string words = errno_words(code);
        INFO(words);
        CHECK(words.find("o such file") == std::string::npos);
        CHECK(words.find("ermission denied") == std::string::npos);
        CHECK(words.find("peration not permitted") == std::string::npos);
    }
    CHECK(errno_words(ENOENT) == "does not exist (ENOENT)");
    CHECK(errno_words(EACCES) == "access denied (EACCES)");
    CHECK(errno_words(EPERM) == "not allowed (EPERM)");
}
