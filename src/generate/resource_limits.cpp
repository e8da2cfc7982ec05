// ResourceLimits from JSON, and the rules for them.
#include "pinfold/resource_limits.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "base/strings.hpp"
#include "json/json.hpp"
#include "spec/reader.hpp"

namespace pinfold {

namespace {

using Field = std::variant<double ResourceLimits::*, uint64_t ResourceLimits::*, bool ResourceLimits::*>;

// A limit is a number from least to most; the bounds are where the kernel's own units end or mean something else.
struct Limit {
    std::string_view name;
    Field field;
    double least = 0;
    double most = 0;
    std::string_view allowed = "true or false";
};

constexpr std::array<Limit, 6> kLimits = {{
    {"cpu_cores", &ResourceLimits::cpu_cores, 0.01, 8192, "a number from 0.01 to 8192"},
    {"memory_mb", &ResourceLimits::memory_mb, 1, 1 << 30, "a whole number from 1 to 1073741824"},
    {"disk_mb", &ResourceLimits::disk_mb, 1, 1 << 30, "a whole number from 1 to 1073741824"},
    {"network_enabled", &ResourceLimits::network_enabled},
    {"max_processes", &ResourceLimits::max_processes, 1, 4194303, "a whole number from 1 to 4194303"},
    {"timeout_seconds", &ResourceLimits::timeout_seconds, 0.001, 31536000, "a number from 0.001 to 31536000"},
}};

std::optional<double> number_of(const Json& json) {
    if (const uint64_t* whole = json.unsigned_integer()) return static_cast<double>(*whole);
    if (const double* real = json.real()) return *real;
    return std::nullopt;
}

bool is_within(const Limit& limit, double value) {
    const bool must_be_whole = std::holds_alternative<uint64_t ResourceLimits::*>(limit.field);
    if (must_be_whole && value != std::floor(value)) return false;
    return value >= limit.least && value <= limit.most;  // false for what is not a number
}

bool read_limit(const Json& json, const Limit& limit, ResourceLimits& limits) {
    if (const auto* flag = std::get_if<bool ResourceLimits::*>(&limit.field)) {
        if (!json.boolean()) return false;
        limits.*(*flag) = *json.boolean();
        return true;
    }
    const std::optional<double> number = number_of(json);
    if (!number || !is_within(limit, *number)) return false;
    if (const auto* real = std::get_if<double ResourceLimits::*>(&limit.field)) limits.*(*real) = *number;
    else limits.*std::get<uint64_t ResourceLimits::*>(limit.field) = static_cast<uint64_t>(*number);
    return true;
}

void read_member(const Json::Member& member, ResourceLimits& limits, Problems& problems) {
    const auto* limit = std::ranges::find(kLimits, member.key, &Limit::name);
    if (limit == kLimits.end()) {
        std::string names;
        for (const Limit& known : kLimits) names += concat(names.empty() ? "" : ", ", known.name);
        problems.add(member_path("", member.key), concat("is no limit; allowed: ", names));
    } else if (!read_limit(member.value, *limit, limits)) {
        problems.add(member.key, expected_but_found(member.value, limit->allowed));
    }
}

std::optional<double> number_in(const ResourceLimits& limits, const Limit& limit) {
    if (const auto* real = std::get_if<double ResourceLimits::*>(&limit.field)) return limits.*(*real);
    if (const auto* whole = std::get_if<uint64_t ResourceLimits::*>(&limit.field)) {
        return static_cast<double>(limits.*(*whole));
    }
    return std::nullopt;
}

}  // namespace

Result<ResourceLimits> parse_resource_limits(std::string_view json, std::string_view name) {
    const Json root = TRY(parse_json(json, name));
    if (!root.object()) return plain_error(concat(name, ": ", expected_but_found(root, "an object")));
    ResourceLimits limits;
    Problems problems;
    for (const Json::Member& member : *root.object()) read_member(member, limits, problems);
    if (!problems.empty()) return to_error(problems, name);
    return limits;
}

Result<void> check_resource_limits(const ResourceLimits& limits) {
    Problems problems;
    for (const Limit& limit : kLimits) {
        const std::optional<double> number = number_in(limits, limit);
        if (number && !is_within(limit, *number))
            problems.add(std::string(limit.name), concat("allowed: ", limit.allowed));
    }
    if (!problems.empty()) return to_error(problems, "limits");
    return {};
}

}  // namespace pinfold
