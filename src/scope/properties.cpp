// Properties of units in the types that systemd's D-Bus interface gives them.
#include "scope/properties.hpp"

#include <algorithm>
#include <climits>
#include <optional>

#include "base/strings.hpp"

namespace pinfold {

namespace {

enum class Kind : uint8_t { amount, flag, text, indexes, process };

constexpr struct {
    std::string_view name;
    Kind kind;
} kKnown[] = {
    {"AllowedCPUs", Kind::indexes},
    {"AllowedMemoryNodes", Kind::indexes},
    {"CPUAccounting", Kind::flag},
    {"CPUQuotaPerSecUSec", Kind::amount},
    {"CPUQuotaPeriodUSec", Kind::amount},
    {"CPUWeight", Kind::amount},
    {"CollectMode", Kind::text},
    {"DefaultDependencies", Kind::flag},
    {"Delegate", Kind::flag},
    {"Description", Kind::text},
    {"IOAccounting", Kind::flag},
    {"IOWeight", Kind::amount},
    {"MemoryAccounting", Kind::flag},
    {"MemoryHigh", Kind::amount},
    {"MemoryLow", Kind::amount},
    {"MemoryMax", Kind::amount},
    {"MemoryMin", Kind::amount},
    {"MemorySwapMax", Kind::amount},
    {"PIDs", Kind::process},
    {"Slice", Kind::text},
    {"TasksAccounting", Kind::flag},
    {"TasksMax", Kind::amount},
    {"TimeoutStopUSec", Kind::amount},
};

template <class Value, class Parsed>
std::optional<UnitProperty> with(std::string_view name, const std::optional<Parsed>& value) {
    if (!value) return std::nullopt;
    return UnitProperty{std::string(name), Value(*value)};
}

std::optional<uint64_t> parse_amount(std::string_view text) {
    return text == "infinity" ? UINT64_MAX : parse_number<uint64_t>(text);
}

std::optional<bool> parse_flag(std::string_view text) {
    if (text != "yes" && text != "no") return std::nullopt;
    return text == "yes";
}

// Bytes, whatever the machine's order of them in a word.
std::optional<IndexMask> parse_indexes(std::string_view text) {
    const auto words = parse_index_list(text);
    if (!words) return std::nullopt;
    IndexMask mask;
    for (const unsigned long word : *words) {
        for (size_t byte = 0; byte < sizeof word; ++byte) {
            mask.push_back(static_cast<uint8_t>(word >> (byte * CHAR_BIT)));
        }
    }
    while (!mask.empty() && mask.back() == 0) mask.pop_back();
    return mask;
}

std::optional<UnitProperty> parse_value(std::string_view name, Kind kind, std::string_view text) {
    switch (kind) {
        case Kind::amount: return with<uint64_t>(name, parse_amount(text));
        case Kind::flag: return with<bool>(name, parse_flag(text));
        case Kind::text: return UnitProperty{std::string(name), std::string(text)};
        case Kind::indexes: return with<IndexMask>(name, parse_indexes(text));
        case Kind::process: return with<pid_t>(name, parse_number<pid_t>(text));
    }
    return std::nullopt;
}

struct Append {
    sd_bus_message* message;
    const char* name;

    int operator()(uint64_t value) const { return ::sd_bus_message_append(message, "(sv)", name, "t", value); }
    int operator()(bool value) const { return ::sd_bus_message_append(message, "(sv)", name, "b", int{value}); }
    int operator()(const std::string& value) const {
        return ::sd_bus_message_append(message, "(sv)", name, "s", value.c_str());
    }
    int operator()(pid_t value) const {
        return ::sd_bus_message_append(message, "(sv)", name, "au", 1, static_cast<uint32_t>(value));
    }
    int operator()(const IndexMask& value) const {
        int result = ::sd_bus_message_open_container(message, 'r', "sv");
        if (result >= 0) result = ::sd_bus_message_append(message, "s", name);
        if (result >= 0) result = ::sd_bus_message_open_container(message, 'v', "ay");
        if (result >= 0) result = ::sd_bus_message_append_array(message, 'y', value.data(), value.size());
        if (result >= 0) result = ::sd_bus_message_close_container(message);
        return result < 0 ? result : ::sd_bus_message_close_container(message);
    }
};

}  // namespace

Result<UnitProperty> parse_property(std::string_view text) {
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    const auto known = std::ranges::find(kKnown, name, [](const auto& one) { return one.name; });
    if (equals == std::string_view::npos || known == std::end(kKnown)) {
        return plain_error(concat(quoted(text), " is no property that can be set"));
    }
    std::optional<UnitProperty> property = parse_value(name, known->kind, text.substr(equals + 1));
    if (!property) return plain_error(concat(quoted(text), ": the value is of another type"));
    return std::move(*property);
}

int append_property(sd_bus_message* message, const UnitProperty& property) {
    return std::visit(Append{message, property.name.c_str()}, property.value);
}

}  // namespace pinfold
