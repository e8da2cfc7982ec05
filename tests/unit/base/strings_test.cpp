// The string helpers: numbers that are refused, quoting that is safe to print.
#include "base/strings.hpp"

#include <cstdint>
#include <ctime>

#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("strings: concat joins text, characters and numbers") {
    CHECK(concat("mounts[", size_t{3}, "] ", std::string("/data"), ':', -1) == "mounts[3] /data:-1");
    CHECK(concat().empty());
    CHECK(concat(UINT64_MAX, ' ', INT64_MIN) == "18446744073709551615 -9223372036854775808");
}

TEST_CASE("strings: a number is the whole text") {
    CHECK(parse_number<int>("42") == 42);
    CHECK(parse_number<int>("-1") == -1);
    CHECK(parse_number<int>("755", 8) == 0755);
    CHECK(parse_number<uint64_t>("18446744073709551615") == UINT64_MAX);
    for (const char* text : {"", " 1", "1 ", "1x", "x", "+1", "0x10", "1.0", "-"}) {
        INFO(text);
        CHECK_FALSE(parse_number<int>(text));
    }
}

TEST_CASE("strings: a number that does not fit is refused") {
    CHECK_FALSE(parse_number<uint8_t>("256"));
    CHECK_FALSE(parse_number<unsigned>("-1"));
    CHECK_FALSE(parse_number<uint64_t>("18446744073709551616"));
    CHECK_FALSE(parse_number<int>("8", 8));
}

TEST_CASE("strings: split keeps empty parts") {
    using Parts = std::vector<std::string_view>;
    CHECK(split("a:b::c", ':') == Parts{"a", "b", "", "c"});
    CHECK(split("", ':') == Parts{""});
    CHECK(split("alone", ':') == Parts{"alone"});
    CHECK(split(":", ':') == Parts{"", ""});
}

TEST_CASE("strings: a list of indices becomes a bit mask") {
    using Mask = std::vector<unsigned long>;
    CHECK(parse_index_list("0") == Mask{1});
    CHECK(parse_index_list("0-3,7") == Mask{0x8f});
    CHECK(parse_index_list("1, 64-65") == Mask{2, 3});
    CHECK(parse_index_list("62-129") == Mask{3UL << 62, ~0UL, 3});
    CHECK(parse_index_list("63-64,128-191") == Mask{1UL << 63, 1, ~0UL});
    CHECK(parse_index_list("65535")->size() == 1024);
    for (const char* wrong : {"", "all", "3-1", "1,", ",1", "1--2", "-1", "1-", "0x1", "65536", "0-4294967295"}) {
        CAPTURE(wrong);
        CHECK_FALSE(parse_index_list(wrong));
    }
}

TEST_CASE("strings: a list that names all indices again and again takes no time") {
    std::string list = "0-65535";
    for (int i = 1; i < 200'000; ++i) list += ",0-65535";
    const std::clock_t before = std::clock();
    CHECK(parse_index_list(list)->size() == 1024);
    CHECK(double(std::clock() - before) / CLOCKS_PER_SEC < 5);
}

TEST_CASE("strings: join puts the separator between items only") {
    CHECK(join({"a", "b", "c"}, ", ") == "a, b, c");
    CHECK(join({"a"}, ", ") == "a");
    CHECK(join({"", ""}, ",") == ",");
    CHECK(join({}, ", ").empty());
}

TEST_CASE("strings: quoted text cannot move the cursor of a terminal") {
    CHECK(quoted("plain") == "'plain'");
    CHECK(quoted("a\x1b[2Jb\n\x7f") == "'a\\x1b[2Jb\\x0a\\x7f'");
    CHECK(quoted("caf\xc3\xa9") == "'caf\xc3\xa9'");
    CHECK(printable("a\x1b\tb\n") == "a\\x1b\\x09b\\x0a");
    CHECK(printable("a\x1b\tb\n", kLineEnds) == "a\\x1b\tb\n");
}

TEST_CASE(
    "strings: neither do the other control characters, marks of direction and bytes that are not UTF-8 get through") {
    struct Example {
        std::string_view text;
        const char* printed;
        const char* json;
    };
    const Example examples[] = {
        {"\xc2\x80", "\\xc2\\x80", "\\u0080"},
        {"\xc2\x9b", "\\xc2\\x9b", "\\u009b"},
        {"\xc2\x9f", "\\xc2\\x9f", "\\u009f"},
        {"\xd8\x9c", "\\xd8\\x9c", "\\u061c"},
        {"\xe2\x80\xa8", "\\xe2\\x80\\xa8", "\\u2028"},
        // NOLINTBEGIN(misc-misleading-bidirectional): to be misled by none of them is what is tested
        {"\xe2\x80\xaa", "\\xe2\\x80\\xaa", "\\u202a"},
        {"\xe2\x80\xae", "\\xe2\\x80\\xae", "\\u202e"},
        {"\xe2\x81\xa6", "\\xe2\\x81\\xa6", "\\u2066"},
        // NOLINTEND(misc-misleading-bidirectional)
        {"\xe2\x81\xa9", "\\xe2\\x81\\xa9", "\\u2069"},
        {"\x9b", "\\x9b", "\xef\xbf\xbd"},
        {"\xff", "\\xff", "\xef\xbf\xbd"},
        {"\x7f", "\\x7f", "\\u007f"},
    };
    for (const Example& example : examples) {
        CAPTURE(example.printed);
        CHECK(printable(example.text, kLineEnds) == example.printed);
        CHECK(quoted(example.text) == concat('\'', example.printed, '\''));
        CHECK(json_quoted(example.text) == concat('"', example.json, '"'));
    }
    // Their neighbours, letters of all sorts, and what has no direction of its own.
    for (const char* text :
         {"~", "\xc2\xa0", "\xe2\x80\xaf", "\xe2\x81\xa5", "\xe2\x81\xaa", "\xd7\x90", "\xe2\x82\xac"}) {
        CHECK(printable(text) == text);
        CHECK(json_quoted(text) == concat('"', text, '"'));
    }
}

TEST_CASE("strings: a JSON literal escapes what JSON asks for") {
    CHECK(json_quoted("a\"b\\c") == R"("a\"b\\c")");
    CHECK(json_quoted("\n\t\r\x01") == R"("\n\t\r\u0001")");
    CHECK(json_quoted(std::string_view("\0", 1)) == R"("\u0000")");
    CHECK(json_quoted("").size() == 2);
}

TEST_CASE("strings: well-formed UTF-8 passes through a JSON literal") {
    // the first and last of each length, and both neighbours of the surrogates
    for (const char* text : {"~", "\xc2\xa0", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                             "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        CHECK(json_quoted(text) == concat('"', text, '"'));
    }
}

TEST_CASE("strings: each byte that is not UTF-8 becomes U+FFFD in a JSON literal") {
    constexpr std::string_view kReplacement = "\xef\xbf\xbd";
    struct Example {
        const char* what;
        std::string_view bytes;
        int replaced;
    };
    const Example examples[] = {
        {"continuation alone", "\x80", 1},
        {"overlong slash", "\xc0\xaf", 2},
        {"overlong, 3 bytes", "\xe0\x80\xaf", 3},
        {"surrogate", "\xed\xa0\x80", 3},
        {"beyond U+10FFFF", "\xf4\x90\x80\x80", 4},
        {"never a byte of UTF-8", "\xff", 1},
        {"cut short", "\xe2\x82", 2},
    };
    for (const Example& example : examples) {
        INFO(example.what);
        std::string expected = "\"";
        for (int i = 0; i < example.replaced; ++i) expected += kReplacement;
        CHECK(json_quoted(example.bytes) == expected + "\"");
    }
    CHECK(json_quoted("a\xff"
                      "b") == concat("\"a", kReplacement, "b\""));
}
