// Bytes to text and back.
#include "base/base64.hpp"

#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("base64: as RFC 4648 has it, and back") {
    const std::pair<std::string_view, std::string_view> pairs[] = {
        {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
    for (const auto& pair : pairs) {
        const std::string text(pair.second);
        CAPTURE(text);
        CHECK(to_base64(pair.first) == pair.second);
        CHECK(from_base64(pair.second) == pair.first);
    }
    CHECK(from_base64("Zm9v!Zm9v") == "foo");
    std::string all;
    for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    CHECK(from_base64(to_base64(all)) == all);
}
