// Which systemd unit a container's group is: the names follow systemd.unit(5) and systemd.slice(5).
#include "cgroup/scope_name.hpp"

#include <algorithm>
#include <vector>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxLength = 255;
constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kRootSlice = "-.slice";

bool is_unit_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.\\@").find(c) != std::string_view::npos;
}

Result<void> check_unit(const std::string& unit) {
    if (unit.size() <= kMaxLength && std::ranges::all_of(unit, is_unit_character)) return {};
    return plain_error(concat(quoted(unit), " is no name of a systemd unit"))
        .with_hint("allowed are up to 255 letters, digits and the characters - _ . \\ @");
}

// A dash stands for one level of nesting.
Result<void> check_slice(const std::string& slice) {
    if (slice == kRootSlice) return {};
    const bool usable = slice.size() > kSlice.size() && slice.ends_with(kSlice) && !slice.starts_with('-') &&
                        !slice.ends_with("-.slice") && slice.find("--") == std::string::npos;
    if (!usable) {
        return plain_error(concat(quoted(slice), " is no name of a systemd slice"))
            .with_hint("it looks like system.slice, or outer-inner.slice for a slice within outer.slice");
    }
    return check_unit(slice);
}

// Of all that an id may hold, '+' alone is not allowed in the name of a unit.
std::string escaped(std::string_view id) {
    std::string out;
    for (const char c : id) {
        if (c == '+') out += "\\x2b";
        else out += c;
    }
    return out;
}

}  // namespace

Result<ScopeName> parse_scope_name(const std::string& cgroups_path, const std::string& id,
                                   const std::string& default_slice) {
    const std::string triple = cgroups_path.empty() ? concat(":pinfold:", escaped(id)) : cgroups_path;
    const std::vector<std::string_view> parts = split(triple, ':');
    if (triple.starts_with('/') || parts.size() != 3 || parts[2].empty()) {
        return plain_error(concat(quoted(triple), " is not SLICE:PREFIX:NAME, which the systemd cgroup manager needs"))
            .with_hint("as in system.slice:docker:web; paths are for --cgroup-manager cgroupfs");
    }
    if (parts[2].ends_with(kSlice)) {
        return plain_error(concat(quoted(parts[2]), " is a slice, and a container is a scope"))
            .with_hint("a slice for several containers comes first: SLICE:PREFIX:NAME");
    }
    ScopeName name;
    name.slice = parts[0].empty() ? default_slice : std::string(parts[0]);
    name.unit = concat(parts[1], parts[1].empty() ? "" : "-", parts[2], ".scope");
    TRY(check_slice(name.slice));
    TRY(check_unit(name.unit));
    return name;
}

std::string scope_path(const ScopeName& name) {
    std::string path;
    if (name.slice != kRootSlice) {
        for (size_t dash = name.slice.find('-'); dash != std::string::npos; dash = name.slice.find('-', dash + 1)) {
            path += concat("/", name.slice.substr(0, dash), kSlice);
        }
        path += concat("/", name.slice);
    }
    return concat(path, "/", name.unit);
}

}  // namespace pinfold
