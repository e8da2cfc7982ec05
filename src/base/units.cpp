// Sizes, times and ports as people and Go programs write them.
#include "base/units.hpp"

#include <charconv>
#include <iterator>
#include <utility>

#include "base/strings.hpp"

namespace pinfold {

namespace {

// The number that the text begins with, taken off it: digits, perhaps with a point, and neither sign nor exponent.
std::optional<double> take_number(std::string_view& text) {
    double value = 0;
    if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(size_t(end - text.data()));
    return value;
}

bool take(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
}

// What fits, cut to a whole number.
std::optional<int64_t> whole(double value) {
    constexpr double kTooMuch = 9223372036854775808.0;
    if (!(value < kTooMuch)) return std::nullopt;
    return static_cast<int64_t>(value);
}

// Longer names first where one begins with another.
constexpr std::pair<std::string_view, double> kTimeUnits[] = {
    {"ns", 1}, {"us", 1e3}, {"\u00b5s", 1e3}, {"\u03bcs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9},
};

std::optional<double> take_time_unit(std::string_view& text) {
    for (const auto& [name, factor] : kTimeUnits) {
        if (take(text, name)) return factor;
    }
    return std::nullopt;
}

}  // namespace

std::optional<int64_t> parse_size(std::string_view text) {
    constexpr std::string_view kUnits = "kKmMgGtTpP";
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    double factor = 1;
    if (const size_t unit = text.empty() ? kUnits.npos : kUnits.find(text[0]); unit != kUnits.npos) {
        factor = double(uint64_t{1024} << 10 * (unit / 2));  // small and capital letters in turn
        text.remove_prefix(1);
        if (!take(text, "i")) take(text, "I");
    }
    if (!take(text, "b")) take(text, "B");
    if (!text.empty()) return std::nullopt;
    return whole(*number * factor);
}

std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) {
    double sum = 0;
    do {
        const auto number = take_number(text);
        const auto unit = take_time_unit(text);
        if (!number || !unit) return std::nullopt;
        sum += *number * *unit;
    } while (!text.empty());
    // A hundred years: added to a clock, or to a time of grace, it is still a number.
    constexpr int64_t kMost = int64_t{100} * 365 * 86400 * 1'000'000'000;
    const auto result = whole(sum);
    if (!result || *result > kMost) return std::nullopt;
    return std::chrono::nanoseconds(*result);
}

std::string decimal(double number) {
    char text[32];
    return {text, std::to_chars(std::begin(text), std::end(text), number).ptr};
}

std::string in_seconds(double seconds) {
    char text[32];
    const auto end = std::to_chars(std::begin(text), std::end(text) - 2, seconds, std::chars_format::fixed, 1).ptr;
    return std::string(text, end) + " s";
}

std::optional<Ports> parse_ports(std::string_view text) {
    if (text == "any") return Ports();
    std::vector<uint16_t> ports;
    if (text == "none") return ports;
    for (const std::string_view word : split(text, ',')) {
        const std::optional<uint16_t> port = parse_number<uint16_t>(word);
        if (!port) return std::nullopt;
        ports.push_back(*port);
    }
    return ports;
}

}  // namespace pinfold
