// Who the payload is.
#include "kernel/credentials.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxPasswd = size_t{1} << 20;  // the file is the container's: do not read without end

std::string read_passwd() {
    const Result<UniqueFd> file = open_at(AT_FDCWD, "/etc/passwd", O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (!file) return {};
    std::string text(kMaxPasswd, '\0');
    const ssize_t length = ::read(file->get(), text.data(), text.size());
    text.resize(length < 0 ? 0 : size_t(length));
    return text;
}

// A joined user namespace may deny setgroups. That is no loss if there are no groups to drop and none to add.
Result<void> set_groups(const std::vector<gid_t>& groups) {
    if (::setgroups(groups.size(), groups.data()) == 0) return {};
    const int code = errno;
    if (code == EPERM && groups.empty() && ::getgroups(0, nullptr) == 0) return {};
    return errno_error(code, "set the additional groups").with_hint("each group must be in the container's gid map");
}

}  // namespace

Result<void> change_identity(const Identity& identity) {
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

Result<void> join_new_keyring(const std::string& name) {
    if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, name.c_str()) >= 0) return {};
    if (errno == ENOSYS) {
        log_warning("this kernel has no keyrings, so the container has no session keyring of its own");
        return {};
    }
    return errno_error("join a new session keyring").with_hint("raise kernel.keys.maxkeys, or use --no-new-keyring");
}

Result<void> forbid_new_privileges() {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error("set no_new_privs");
    return {};
}

std::string home_directory(uid_t uid) {
    const std::string passwd = read_passwd();
    for (const std::string_view line : split(passwd, '\n')) {
        const std::vector<std::string_view> fields = split(line, ':');  // name:password:uid:gid:gecos:home:shell
        if (fields.size() >= 6 && parse_number<uid_t>(fields[2]) == uid && fields[5].starts_with('/')) {
            return std::string(fields[5]);
        }
    }
    return "/";
}

}  // namespace pinfold
