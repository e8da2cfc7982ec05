// Paths as an administrator writes them in a rule.
#include "policy/path_rules.hpp"

#include <dirent.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <memory>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/credentials.hpp"
#include "pinfold/mount_policy.hpp"
#include "policy/host_path.hpp"

namespace pinfold {

namespace {

// Only `*` is special: a rule for a directory that is called "[x]" means that one.
std::string star_pattern(std::string_view name) {
    std::string out;
    for (const char c : name) {
        if (c == '\\' || c == '?' || c == '[') out += '\\';
        out += c;
    }
    return out;
}

bool matches(const std::string& pattern, std::string_view name) {
    return ::fnmatch(star_pattern(pattern).c_str(), std::string(name).c_str(), 0) == 0;
}

std::vector<std::string> entries_that_match(const std::string& directory, const std::string& pattern) {
    std::vector<std::string> found;
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(directory.empty() ? "/" : directory.c_str()),
                                                     ::closedir);
    if (!stream) return found;
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != ".." && matches(pattern, name)) found.push_back(concat(directory, '/', name));
    }
    return found;
}

// The environment is the caller's to change, the file is not: both count.
std::vector<std::string> homes() {
    std::vector<std::string> found = {home_directory(::getuid())};
    if (const char* home = std::getenv("HOME")) found.emplace_back(home);
    std::erase_if(found, [](const std::string& home) { return !home.starts_with('/') || home == "/"; });
    if (found.size() == 2 && found[0] == found[1]) found.pop_back();
    return found;
}

std::string working_directory() {
    char path[PATH_MAX];
    return ::getcwd(path, sizeof path) == nullptr ? "" : path;
}

}  // namespace

std::vector<std::string> without_tilde(const std::string& rule) {
    if (!rule.starts_with('~')) return {rule};
    std::vector<std::string> found = homes();
    for (std::string& home : found) home += rule.substr(1);
    return found;
}

std::vector<std::string> expand_stars(const std::string& pattern) {
    if (pattern.find('*') == std::string::npos) return {pattern};
    std::vector<std::string> found = {""};
    for (const std::string_view part : split(std::string_view(pattern).substr(1), '/')) {
        const std::string name(part);
        std::vector<std::string> longer;
        for (const std::string& base : found) {
            if (name.find('*') == std::string::npos) longer.push_back(concat(base, '/', name));
            else std::ranges::move(entries_that_match(base, name), std::back_inserter(longer));
        }
        found = std::move(longer);
    }
    return found;
}

bool is_within_pattern(std::string_view path, const std::string& pattern) {
    if (pattern.find('*') == std::string::npos) return is_within(path, pattern);
    const std::vector<std::string_view> names = split(path, '/');
    const std::vector<std::string_view> wanted = split(pattern, '/');
    if (names.size() < wanted.size()) return false;
    return std::equal(wanted.begin(), wanted.end(), names.begin(),
                      [](std::string_view part, std::string_view name) { return matches(std::string(part), name); });
}

std::vector<std::string> places_on_the_way(const std::string& path) {
    constexpr unsigned kMostLinks = 40;  // as for the kernel
    std::vector<std::string> places;
    std::string place;  // empty: the root
    std::string left = path.starts_with('/') ? path : concat(working_directory(), '/', path);
    while (!left.empty()) {
        const size_t slash = left.find('/');
        const std::string name = left.substr(0, slash);
        left.erase(0, slash == left.npos ? slash : slash + 1);
        if (name.empty() || name == ".") continue;
        if (name == "..") {
            place.erase(std::min(place.rfind('/'), place.size()));
            continue;
        }
        place += concat('/', name);
        const std::string target = places.size() < kMostLinks ? link_target(place) : "";
        if (target.empty()) continue;
        places.push_back(place);
        place.erase(target.starts_with('/') ? 0 : place.rfind('/'));
        left = concat(target, '/', left);
    }
    places.push_back(place.empty() ? "/" : place);
    return places;
}

Error state_refusal(std::string_view path, std::string_view place, std::string_view root) {
    return Error{kPolicyRefusal,
                 concat("policy: ", path, is_within(path, place) ? " is in " : " contains ", root,
                        ", where the states of containers are kept"),
                 "name a directory without it, or keep the states elsewhere, with --root"};
}

}  // namespace pinfold
