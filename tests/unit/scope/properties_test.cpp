// What pinfold-scope makes of "NAME=VALUE".
#include "scope/properties.hpp"

#include "support/testing.hpp"

using namespace pinfold;

namespace {

template <class Value>
std::optional<Value> value_of(std::string_view text) {
    const auto property = parse_property(text);
    if (!property || !std::holds_alternative<Value>(property->value)) return std::nullopt;
    return std::get<Value>(property->value);
}

}  // namespace

TEST_CASE("property: each in its type") {
    CHECK(value_of<uint64_t>("MemoryMax=67108864") == 67108864U);
    CHECK(value_of<uint64_t>("TasksMax=infinity") == UINT64_MAX);
    CHECK(value_of<bool>("Delegate=yes") == true);
    CHECK(value_of<bool>("DefaultDependencies=no") == false);
    CHECK(value_of<std::string>("Description=a=b c") == "a=b c");
    CHECK(value_of<pid_t>("PIDs=17") == 17);
    CHECK(parse_property("Slice=a.slice").value().name == "Slice");
}

TEST_CASE("property: sets of CPUs are bytes, the lowest first") {
    CHECK(value_of<IndexMask>("AllowedCPUs=0-1,3") == IndexMask{0x0b});
    CHECK(value_of<IndexMask>("AllowedCPUs=8") == IndexMask{0, 1});
    CHECK(value_of<IndexMask>("AllowedMemoryNodes=0,64") == IndexMask{1, 0, 0, 0, 0, 0, 0, 0, 1});
}

TEST_CASE("property: what is refused") {
    for (const char* text : {"", "MemoryMax", "=1", "ExecStart=/bin/sh", "MemoryMax=", "MemoryMax=1x", "MemoryMax=-1",
                             "Delegate=maybe", "PIDs=self", "AllowedCPUs=a"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_property(text).has_value());
    }
}
