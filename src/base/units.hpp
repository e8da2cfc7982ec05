// Sizes, times and ports as people and Go programs write them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pinfold {

// "100M", "1.5g", "512KiB", "1024": bytes, by powers of 1024.
std::optional<int64_t> parse_size(std::string_view text);

// "5s", "100ms", "1h30m", "1.5s"
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

// The shortest text that is this number: "0.5", "60".
std::string decimal(double number);

// "2.0 s"
std::string in_seconds(double seconds);

// TCP ports: "80,443", "any", which is nothing, or "none". No value for anything else.
using Ports = std::optional<std::vector<uint16_t>>;
std::optional<Ports> parse_ports(std::string_view text);

}  // namespace pinfold
