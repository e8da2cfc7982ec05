// Users and groups by name.
#include "kernel/users.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/capabilities.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxFile = size_t{1} << 20;  // the file is the container's: do not read without end

// The file may be a link to anything that is in view: it is opened as root in the container, if that is who we are, but
// with none of the rights that our capabilities give.
Result<std::string> read_database(const char* path) {
    const SetAsideCapabilities aside;
    if (!aside) return std::string();
    const Result<UniqueFd> file = open_at(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!file) return std::string();
    struct stat info {};
    if (::fstat(file->get(), &info) != 0) return errno_error(concat("stat ", path));
    if (!S_ISREG(info.st_mode)) return plain_error(concat("the container's ", path, " is not a regular file"));
    return read_at_most(file->get(), concat("the container's ", path), kMaxFile);
}

using Fields = std::vector<std::string_view>;

// The first line of the file with enough fields that fits.
template <class Fits>
std::optional<Fields> find_line(const std::string& text, size_t fields_needed, Fits fits) {
    for (const std::string_view line : split(text, '\n')) {
        Fields fields = split(line, ':');
        if (fields.size() >= fields_needed && fits(fields)) return fields;
    }
    return std::nullopt;
}

bool is_number(std::string_view text) { return text.find_first_not_of("0123456789") == text.npos; }

// A container has no say in what a number means: one that is no id, and nothing at all, are in none of its files.
bool is_named(const Fields& fields, std::string_view name) { return fields[0] == name && !is_number(name); }

// name:password:uid:gid:gecos:home:shell
std::optional<Fields> find_passwd_line(const std::string& passwd, std::string_view name, std::optional<uid_t> uid) {
    return find_line(passwd, 6, [&](const Fields& fields) {
        return uid ? parse_number<uid_t>(fields[2]) == *uid : is_named(fields, name);
    });
}

// name:password:gid:members
Result<gid_t> find_group(std::string_view text, const std::string& groups) {
    if (const std::optional<gid_t> gid = parse_number<gid_t>(text)) return *gid;
    const auto line = find_line(groups, 3, [&](const Fields& fields) { return is_named(fields, text); });
    const std::optional<gid_t> gid = line ? parse_number<gid_t>((*line)[2]) : std::nullopt;
    if (!gid) return plain_error(concat("group ", quoted(text), " is not in the container's /etc/group"));
    return *gid;
}

std::vector<gid_t> groups_of(std::string_view user, const std::string& groups) {
    std::vector<gid_t> found;
    for (const std::string_view line : split(groups, '\n')) {
        const Fields fields = split(line, ':');
        if (fields.size() < 4) continue;
        const Fields members = split(fields[3], ',');
        const std::optional<gid_t> gid = parse_number<gid_t>(fields[2]);
        if (gid && std::ranges::find(members, user) != members.end()) found.push_back(*gid);
    }
    return found;
}

}  // namespace

Result<Identity> find_user(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string_view name = std::string_view(text).substr(0, colon);
    const std::optional<uid_t> number = parse_number<uid_t>(name);
    const std::string passwd = TRY(read_database("/etc/passwd"));
    const auto line = find_passwd_line(passwd, name, number);
    const std::optional<uid_t> uid = number ? number : line ? parse_number<uid_t>((*line)[2]) : std::nullopt;
    if (!uid) return plain_error(concat("user ", quoted(name), " is not in the container's /etc/passwd"));
    const std::string groups = TRY(read_database("/etc/group"));
    Identity identity{*uid, line ? parse_number<gid_t>((*line)[3]).value_or(0) : 0, {}, true};
    if (colon != std::string::npos) identity.gid = TRY(find_group(std::string_view(text).substr(colon + 1), groups));
    else if (line) identity.groups = groups_of((*line)[0], groups);
    return identity;
}

std::string home_directory(uid_t uid) {
    const Result<std::string> passwd = read_database("/etc/passwd");
    const auto line = passwd ? find_passwd_line(*passwd, {}, uid) : std::nullopt;
    return line && (*line)[5].starts_with('/') ? std::string((*line)[5]) : "/";
}

}  // namespace pinfold
