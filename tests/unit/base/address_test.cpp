// Addresses and ports as words.
#include "base/address.hpp"

#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("address: what follows it is told apart, and it has one spelling") {
    const auto address = [](std::string_view text) {
        const std::optional<AddressAnd> split = split_address(text);
        return split ? split->address + (split->rest ? "|" + std::string(*split->rest) : "") : "none";
    };
    CHECK(address("127.0.0.1") == "127.0.0.1");
    CHECK(address("127.0.0.1:") == "127.0.0.1|");
    CHECK(address("127.0.0.1:80:81") == "127.0.0.1|80:81");
    CHECK(address("[0:0::1]:80") == "::1|80");
    CHECK(address("[::]") == "::");
    for (const char* wrong : {"", ":", "80:81", "127.1:80", "0127.0.0.1:1", "localhost:1", "[::1", "[::1]80", "[]:1",
                              "[127.0.0.1]:1", "::1", " 127.0.0.1:1"}) {
        CAPTURE(wrong);
        CHECK(address(wrong) == "none");
    }
    CHECK(address_text("::1", 80) == "[::1]:80");
    CHECK(address_text("10.0.0.1", 0) == "10.0.0.1:0");
}

TEST_CASE("address: the kernel's form has the family that it is of") {
    CHECK(socket_address("127.0.0.1", 80)->name.ss_family == AF_INET);
    CHECK(socket_address("::1", 80)->name.ss_family == AF_INET6);
    CHECK_FALSE(socket_address("name", 80));
}
