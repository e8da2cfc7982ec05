// Who the payload is.
#include "kernel/credentials.hpp"

#include <grp.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/log.hpp"
#include "base/strings.hpp"

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

}  // namespace pinfold
