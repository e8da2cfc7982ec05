// Who the payload is.
#include "kernel/credentials.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/capabilities.hpp"

namespace pinfold {

namespace {

constexpr uint32_t kNoChange = UINT32_MAX;

// A joined user namespace may deny setgroups. That is no loss if there are no groups to drop and none to add.
Result<void> set_groups(const std::vector<gid_t>& groups) {
    if (::setgroups(groups.size(), groups.data()) == 0) return {};
    const int code = errno;
    if (code == EPERM && groups.empty() && ::getgroups(0, nullptr) == 0) return {};
    return errno_error(code, "set the additional groups").with_hint("each group must be in the container's gid map");
}

// 0, or some other id where the container has no root.
uint32_t id_for_set_up(const std::vector<IdRange>& ranges) {
    const bool has_root =
        std::any_of(ranges.begin(), ranges.end(), [](const IdRange& range) { return range.inside == 0; });
    return has_root || ranges.empty() ? 0 : ranges.front().inside;
}

}  // namespace

Result<void> become_namespace_root(const IdMaps& maps) {
    const gid_t gid = id_for_set_up(maps.gids);
    const uid_t uid = id_for_set_up(maps.uids);
    if (::setresgid(gid, gid, gid) != 0) return errno_error(concat("become group ", gid, " of the user namespace"));
    if (::setresuid(uid, uid, uid) != 0) return errno_error(concat("become user ", uid, " of the user namespace"));
    // The change of ids has cleared it.
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    return {};
}

Result<void> change_identity(const Identity& identity) {
    // The kernel takes it for "as before", which is root here.
    if (identity.uid == kNoChange || identity.gid == kNoChange)
        return plain_error(concat("id ", kNoChange, " belongs to no user and no group"));
    if (::prctl(PR_SET_KEEPCAPS, 1) != 0) return errno_error("keep capabilities");
    if (identity.set_groups) TRY(set_groups(identity.groups));
    if (::setresgid(identity.gid, identity.gid, identity.gid) != 0) {
        return errno_error(concat("change to group ", identity.gid)).with_hint("it must be in the container's gid map");
    }
    if (::setresuid(identity.uid, identity.uid, identity.uid) != 0) {
        return errno_error(concat("change to user ", identity.uid)).with_hint("it must be in the container's uid map");
    }
    if (::prctl(PR_SET_KEEPCAPS, 0) != 0) return errno_error("keep capabilities no longer");
    return {};
}

Result<void> join_new_keyring(const std::string& name, std::string_view remedy) {
    if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, name.c_str()) >= 0) return {};
    if (errno == ENOSYS) {
        log_warning("this kernel has no keyrings, so the container has no session keyring of its own");
        return {};
    }
    Error error = errno_error("join a new session keyring");
    const bool full = error.code == EDQUOT;
    return full ? std::move(error).with_hint(concat("raise kernel.keys.maxkeys", remedy)) : error;
}

Result<void> forbid_new_privileges() {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error("set no_new_privs");
    return {};
}

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

namespace {

constexpr struct {
    std::string_view name;
    int number;
    std::string_view title;
} kRlimits[] = {
    {"RLIMIT_AS", RLIMIT_AS, "Max address space"},
    {"RLIMIT_CORE", RLIMIT_CORE, "Max core file size"},
    {"RLIMIT_CPU", RLIMIT_CPU, "Max cpu time"},
    {"RLIMIT_DATA", RLIMIT_DATA, "Max data size"},
    {"RLIMIT_FSIZE", RLIMIT_FSIZE, "Max file size"},
    {"RLIMIT_LOCKS", RLIMIT_LOCKS, "Max file locks"},
    {"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, "Max locked memory"},
    {"RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE, "Max msgqueue size"},
    {"RLIMIT_NICE", RLIMIT_NICE, "Max nice priority"},
    {"RLIMIT_NOFILE", RLIMIT_NOFILE, "Max open files"},
    {"RLIMIT_NPROC", RLIMIT_NPROC, "Max processes"},
    {"RLIMIT_RSS", RLIMIT_RSS, "Max resident set"},
    {"RLIMIT_RTPRIO", RLIMIT_RTPRIO, "Max realtime priority"},
    {"RLIMIT_RTTIME", RLIMIT_RTTIME, "Max realtime timeout"},
    {"RLIMIT_SIGPENDING", RLIMIT_SIGPENDING, "Max pending signals"},
    {"RLIMIT_STACK", RLIMIT_STACK, "Max stack size"},
};

Result<void> apply(const ResourceLimit& wanted) {
    if (::prlimit(0, __rlimit_resource(wanted.resource), &wanted.limit, nullptr) == 0) return {};
    if (errno != EPERM) return errno_error(wanted.name);
    rlimit current{};
    if (::getrlimit(__rlimit_resource(wanted.resource), &current) != 0) return errno_error(wanted.name);
    const rlimit possible{std::min(wanted.limit.rlim_cur, current.rlim_max),
                          std::min(wanted.limit.rlim_max, current.rlim_max)};
    if (::prlimit(0, __rlimit_resource(wanted.resource), &possible, nullptr) != 0 && errno != EPERM)
        return errno_error(wanted.name);
    log_warning(concat(wanted.name, ": raising the hard limit from ", current.rlim_max, " to ", wanted.limit.rlim_max,
                       " needs CAP_SYS_RESOURCE on the host; it stays at ", current.rlim_max));
    return {};
}

}  // namespace

std::optional<int> rlimit_number(std::string_view name) {
    for (const auto& entry : kRlimits) {
        if (entry.name == name) return entry.number;
    }
    return std::nullopt;
}

std::string_view rlimit_title(int number) {
    for (const auto& entry : kRlimits) {
        if (entry.number == number) return entry.title;
    }
    return {};
}

void raise_hard_limits(pid_t pid, std::span<const ResourceLimit> limits) {
    for (const ResourceLimit& wanted : limits) {
        rlimit current{};
        if (::prlimit(pid, __rlimit_resource(wanted.resource), nullptr, &current) != 0) continue;
        if (wanted.limit.rlim_max <= current.rlim_max) continue;
        current.rlim_max = wanted.limit.rlim_max;
        // Where even the parent may not, the child warns.
        ::prlimit(pid, __rlimit_resource(wanted.resource), &current, nullptr);
    }
}

Result<void> apply_rlimits(std::span<const ResourceLimit> limits) {
    for (const ResourceLimit& wanted : limits) TRY(apply(wanted));
    return {};
}

}  // namespace pinfold
