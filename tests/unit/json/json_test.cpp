// The JSON reader: what it keeps, what it refuses, and where it says that the fault is.
#include "json/json.hpp"

#include <cmath>
#include <string>

#include "base/strings.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

Json json(std::string_view text) {
    Result<Json> root = parse_json(text, "text");
    REQUIRE_MESSAGE(root, root.error().message);
    return std::move(root).value();
}

std::string error_of(std::string_view text) {
    const Result<Json> root = parse_json(text, "c.json");
    REQUIRE_FALSE(root);
    return root.error().message;
}

std::string nested(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("json: every kind of value is kept as what it is") {
    const Json root = json(R"({"n": null, "b": true, "i": -1, "u": 7, "r": 1.5, "s": "x", "a": [1], "o": {}})");
    REQUIRE(root.kind() == Json::Kind::object);
    CHECK(root.find("n")->kind() == Json::Kind::null);
    CHECK(*root.find("b")->boolean());
    CHECK(*root.find("i")->integer() == -1);
    CHECK(*root.find("u")->unsigned_integer() == 7);
    CHECK(*root.find("r")->real() == 1.5);
    CHECK(*root.find("s")->string() == "x");
    CHECK(root.find("a")->array()->size() == 1);
    CHECK(root.find("o")->object()->empty());
    CHECK(root.find("absent") == nullptr);
    CHECK(root.find("s")->find("x") == nullptr);
    CHECK(root.find("s")->integer() == nullptr);
}

// A mark of the byte order in front of it means nothing, and makes a text one that is not plain.
TEST_CASE("json: a plain text is read as any other is") {
    const auto told = [](const std::string& text) {
        const Result<Json> root = parse_json(text, "text");
        return root ? json_text(*root) : "refused";
    };
    const std::string texts[] = {"{}",
                                 "[]",
                                 " [ ] ",
                                 "{\"a\": [1, -1, 0, true, false, null, \"x\", {}]}\n",
                                 "\"\"",
                                 "0",
                                 "-0",
                                 "00",
                                 "01",
                                 "-01",
                                 "-",
                                 "1.",
                                 "1.0",
                                 "1e1",
                                 "1E+1",
                                 "+1",
                                 ".5",
                                 "999999999999999999",
                                 "9999999999999999999",
                                 "-999999999999999999",
                                 "-9999999999999999999",
                                 "123456789012345678901",
                                 "[1,]",
                                 "[,1]",
                                 "[1 2]",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{,}",
                                 "{1:1}",
                                 "{\"a\":1 \"b\":2}",
                                 "[1",
                                 "{\"a\":1",
                                 "\"a",
                                 "\"a\nb\"",
                                 "\"\x7f\"",
                                 "\"\\u0041\"",
                                 "\"\\\"\"",
                                 "\"\xc3\xa4\"",
                                 "\"\xc3\"",
                                 "tru",
                                 "truex",
                                 "nul",
                                 "falsey",
                                 "[true false]",
                                 "1 1",
                                 "{} {}",
                                 "",
                                 " ",
                                 "\t\r\n1\t\r\n",
                                 "\f1",
                                 "[1]x",
                                 "{\"a\":1,\"a\":2}",
                                 "1-",
                                 "1+1",
                                 "--1",
                                 "'a'",
                                 "// 1\n1",
                                 nested(128),
                                 nested(129),
                                 "\x01"};
    for (const std::string& text : texts) {
        CAPTURE(text);
        CHECK(told(text) == told("\xef\xbb\xbf" + text));
    }
}

TEST_CASE("json: members keep the order of the text") {
    const Json root = json(R"({"z": 1, "a": {"y": [{"c": 0, "b": 0}]}, "m": 3})");
    std::string order;
    for (const Json::Member& member : *root.object()) order += member.key;
    for (const Json::Member& member : *(*root.find("a")->find("y")->array())[0].object()) order += member.key;
    CHECK(order == "zamcb");
}

TEST_CASE("json: whole numbers of 64 bits are exact, larger ones are real") {
    CHECK(*json("18446744073709551615").unsigned_integer() == 18446744073709551615u);
    CHECK(*json("9223372036854775807").unsigned_integer() == 9223372036854775807u);
    CHECK(*json("-9223372036854775808").integer() == std::numeric_limits<int64_t>::min());
    CHECK(json("18446744073709551616").kind() == Json::Kind::real);
    CHECK(json("-9223372036854775809").kind() == Json::Kind::real);
    CHECK(json("1e3").kind() == Json::Kind::real);
    CHECK(error_of("[1e999]").starts_with("c.json:1:"));
}

TEST_CASE("json: strings are unescaped, NUL included") {
    CHECK(*json(R"("a\"\\\/\n\u00e4\ud83d\ude00")").string() == "a\"\\/\n\xc3\xa4\xf0\x9f\x98\x80");
    CHECK(*json(R"("a\u0000b")").string() == std::string("a\0b", 3));
}

TEST_CASE("json: a syntax error tells line and column") {
    CHECK(error_of("{\n  \"a\": 1,\n  \"b\" 2\n}") ==
          "c.json:3:7: syntax error while parsing object separator - unexpected number literal; expected ':'");
    CHECK(error_of("{]") ==
          "c.json:1:2: syntax error while parsing object key - unexpected ']'; expected string literal");
    CHECK(error_of("") ==
          "c.json:1:1: syntax error while parsing value - unexpected end of input; expected '[', '{', or a literal");
    CHECK(error_of("\n\n  nul").starts_with("c.json:3:6: syntax error while parsing value - invalid literal"));
    CHECK(error_of("[1,]").starts_with("c.json:1:4: "));
    CHECK(error_of("[1").starts_with("c.json:1:3: "));
    CHECK(error_of("// no\n{}").starts_with("c.json:1:1: "));
}

TEST_CASE("json: what follows the document is refused") {
    CHECK(error_of("{} x").starts_with("c.json:1:4: "));
    CHECK(error_of("{}{}").starts_with("c.json:1:3: "));
    CHECK(error_of(std::string_view("{}\n\0{}", 6)) == "c.json:2:1: a NUL byte");
    CHECK(parse_json("{} \n\t", "c.json"));
}

TEST_CASE("json: bytes that are not UTF-8 are refused") {
    for (const std::string_view bytes : {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
        CAPTURE(bytes);
        CHECK(error_of(concat('"', bytes, '"')).find("ill-formed UTF-8 byte") != std::string::npos);
    }
    CHECK(error_of(R"("\ud800")").find("surrogate") != std::string::npos);
}

TEST_CASE("json: a key that is given twice is refused with its path") {
    CHECK(error_of(R"({"a": 1, "a": 1})") == "c.json: a: this key is given twice");
    CHECK(error_of(R"({"linux": {"namespaces": [{}, {"type": "pid", "path": "", "type": "user"}]}})") ==
          "c.json: linux.namespaces[1].type: this key is given twice");
    CHECK(error_of(R"({"linux": {"sysctl": {"net.a": "", "net.a": ""}}})") ==
          R"(c.json: linux.sysctl["net.a"]: this key is given twice)");
    CHECK(error_of(R"({"a": 1, "\u0061": 1})") == "c.json: a: this key is given twice");
    CHECK(error_of(R"({"0": 1, "0": 1})") == "c.json: 0: this key is given twice");
    CHECK(parse_json(R"({"a": {"a": 1}, "b": {"a": 1}})", "c.json"));
}

TEST_CASE("json: a key that is given twice is found in a large object too") {
    std::string text = "{";
    for (int i = 0; i < 5000; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
    CHECK(parse_json(text + "\"last\": 0}", "c.json"));
    CHECK(error_of(text + "\"k17\": 0}") == "c.json: k17: this key is given twice");
}

TEST_CASE("json: nesting is limited") {
    CHECK(parse_json(nested(kMaxJsonDepth), "c.json"));
    CHECK(error_of(nested(kMaxJsonDepth + 1)) == "c.json: nested deeper than 128 levels");
    CHECK(error_of(std::string(1'000'000, '[')) == "c.json: nested deeper than 128 levels");
}

TEST_CASE("json: there are no more values than are allowed, keys not counted") {
    CHECK(parse_json(R"({"a": [0, {}]})", "c.json", {.values = 4}));
    for (const char* text : {R"({"a": [0, {}]})", R"([0, [0], "x"])", "[1.5, null, true]"}) {
        CAPTURE(text);
        CHECK(parse_json(text, "c.json", {.values = 3}).error().message ==
              "c.json: has more values than the 3 that are allowed");
    }
    std::string many = "[0";
    for (size_t i = 2; i < JsonBounds().values; ++i) many += ",0";
    CHECK(parse_json(many + "]", "c.json"));
    CHECK(error_of(many + ",0]") == "c.json: has more values than the 40000 that are allowed");
    CHECK(parse_json(many + ",0]", "c.json", kOwnJson));
}

TEST_CASE("json: no string and no number is longer than is allowed, and its place is told") {
    const auto parse = [](std::string_view text) { return parse_json(text, "c.json", {.longest = 8}); };
    CHECK(parse(R"({"a": "12345678"})"));
    CHECK(parse(R"({"a": "\"\"\"\""})"));
    CHECK(parse(R"({"a": 12345678, "b": 12345678})"));
    CHECK(parse("                                  0"));
    for (const char* text : {R"({"a": "123456789"})", R"({"a": 12345678901})", R"({"a": "123456\"9"})"}) {
        CAPTURE(text);
        CHECK(parse(text).error().message ==
              "c.json:1:7: has more than 8 bytes, allowed: at most that many in a string or a number");
    }
    CHECK(parse(R"({"123456789": 1})").error().message.starts_with("c.json:1:2: has more than 8 bytes"));
    CHECK(error_of(concat("\n\"", std::string(1 << 20, 'x'), "y\"")).starts_with("c.json:2:1: has more than 1048576"));
}

TEST_CASE("json: what is written reads back the same, whatever it holds") {
    const std::string text = json_text(
        json(R"({"n":null,"b":[true,false],"i":-9223372036854775808,"u":18446744073709551615,"r":[1.5,1e300],)"
             R"("s":"\"\\\u0001é","a":[],"o":{"":{}}})"));
    CHECK(text == R"({
  "n": null,
  "b": [
    true,
    false
  ],
  "i": -9223372036854775808,
  "u": 18446744073709551615,
  "r": [
    1.5,
    1e+300
  ],
  "s": "\"\\\u0001é",
  "a": [],
  "o": {
    "": {}
  }
}
)");
    CHECK(json_text(json(text)) == text);
}

TEST_CASE("json: an object as text, without a tree") {
    const JsonObject none;
    CHECK(none.text() == "{}");
    JsonObject object;
    object.add("number", -1).add("most", UINT64_MAX).add("yes", true).add("null", "null");
    object.add_text("te\"xt", "a\n\x1b\xff").add_if_any("none", "").add_if_any("some", "[]");
    CHECK(object.text() == R"({"number":-1,"most":18446744073709551615,"yes":true,"null":null,"te\"xt":"a\n\u001b)"
                           "\xef\xbf\xbd"
                           R"(","some":[]})");
    CHECK(parse_json(object.text(), "object"));
    CHECK(JsonObject::by_lines().add("a", 1).add_text("b", "c").text() == "{\n  \"a\": 1,\n  \"b\": \"c\"\n}\n");
    CHECK(json_list({}) == "[]");
    CHECK(json_list({"a", "\""}) == R"(["a","\""])");
    CHECK(json_map({{"a", "b"}, {"c", "\t"}}) == R"({"a":"b","c":"\t"})");
}
