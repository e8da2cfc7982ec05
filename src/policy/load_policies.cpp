// The policies that hold here. Who may write them decides, so that is asked of the opened file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "json/reader.hpp"
#include "kernel/namespaces.hpp"
#include "policy/policy.hpp"

namespace pinfold {

namespace {

// Root of the host has no number in a user namespace that does not map it; the kernel shows this one instead.
constexpr uid_t kUnmapped = 65534;

bool is_root(uid_t uid) {
    if (uid != kUnmapped) return uid == 0;
    const Result<bool> initial = in_initial_user_namespace();
    return initial && !*initial;
}

// Files and directories that only `root`, or also the caller, may write to.
Result<void> require_trusted(int fd, const std::string& path, bool callers_own) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error(concat("stat ", path));
    if (!is_root(info.st_uid) && !(callers_own && info.st_uid == ::getuid())) {
        return plain_error(concat(path, " belongs to user ", info.st_uid, ", who could change it"))
            .with_hint(concat("chown root:root ", path));
    }
    if ((info.st_mode & 022) != 0) {
        return plain_error(concat(path, " can be changed by others than its owner"))
            .with_hint(concat("chmod go-w ", path));
    }
    return {};
}

Result<Policy> load(int directory, const std::string& name, const std::string& path, bool callers_own) {
    const UniqueFd file = TRY(open_regular(directory, name));
    TRY(require_trusted(file.get(), path, callers_own));
    return parse_policy(TRY(read_at_most(file.get(), path, kMaxDocument)), path);
}

std::string system_policy_file() { return concat(kPolicyDirectory, '/', kPolicyName); }

// In most places there is none, which is found out by one system call.
Result<void> add_system_policy(Policies& policies) {
    const UniqueFd directory(::open(kPolicyDirectory, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory && errno == ENOENT) return {};
    if (!directory) return errno_error(concat("open ", kPolicyDirectory));
    // Whoever may write to it could remove the file.
    TRY(require_trusted(directory.get(), kPolicyDirectory, false));
    Result<Policy> policy = load(directory.get(), kPolicyName, system_policy_file(), false);
    if (!policy && policy.error().code == ENOENT) return {};
    if (!policy && policy.error().code == EACCES) {
        return std::move(policy).error().with_hint("let those who run sandboxes read it: chmod a+r");
    }
    if (!policy) return std::move(policy).error();
    policies.push_back(std::move(policy).value());
    return {};
}

std::vector<MountPolicy> mounts_of(const Policies& policies) {
    std::vector<MountPolicy> mounts;
    for (const Policy& policy : policies) mounts.push_back(policy.mounts);
    return mounts;
}

}  // namespace

bool Policy::is_system() const { return mounts.origin == system_policy_file(); }

Result<Policies> load_policies(const std::string& added) {
    Policies policies(1);
    TRY_IN("policy", add_system_policy(policies));
    if (!added.empty()) TRY(add_policy(policies, added, added));
    return policies;
}

Result<void> add_policy(Policies& policies, const std::string& file, const std::string& name) {
    Result<Policy> policy = load(AT_FDCWD, file, name, true);
    if (!policy) return std::move(policy).error().within("policy");
    policies.push_back(std::move(policy).value());
    return {};
}

Result<UniqueFd> open_allowed(const Policies& policies, const std::string& path, Access access) {
    return open_allowed(mounts_of(policies), path, access);
}

Result<UniqueFd> open_parent_allowed(const Policies& policies, const std::string& path, Access access) {
    return open_parent_allowed(mounts_of(policies), path, access);
}

// The built-in rules are left out: what is shown was chosen by them.
Result<void> check_not_forbidden(const Policies& policies, const std::string& path) {
    std::vector<MountPolicy> mounts = mounts_of(policies);
    mounts.erase(mounts.begin());
    std::erase_if(mounts, [](const MountPolicy& one) { return one.forbidden_paths.empty(); });
    for (MountPolicy& one : mounts) one.allowed_read_paths = one.allowed_write_paths = std::nullopt;
    if (!mounts.empty()) TRY(open_allowed(mounts, path, Access::read));
    return {};
}

std::vector<std::string> audit_files(const Policies& policies) {
    std::vector<std::string> files;
    for (const Policy& policy : policies) {
        const bool is_new = std::ranges::find(files, policy.audit) == files.end();
        if (!policy.audit.empty() && is_new) files.push_back(policy.audit);
    }
    return files;
}

}  // namespace pinfold
