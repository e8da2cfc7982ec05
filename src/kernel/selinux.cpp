// SELinux contexts that a process takes for what it makes next.
#include "kernel/selinux.hpp"

#include <unistd.h>

#include "base/strings.hpp"
#include "kernel/host_proc.hpp"

namespace pinfold {

namespace {

Result<void> set_context(const std::string& context, pid_t host_pid, const char* file) {
    const HostProc proc = TRY(HostProc::open());
    Result<void> written = proc.write(concat(host_pid, "/attr/", file), context);
    if (written) return {};
    return std::move(written)
        .error()
        .within(concat("label ", quoted(context)))
        .with_hint("does the loaded policy have this user, role and type? seinfo(1) lists them");
}

}  // namespace

Result<void> require_selinux(std::string_view property) {
    if (::access("/sys/fs/selinux/enforce", F_OK) == 0) return {};
    return plain_error(concat(property, ": this host does not run SELinux"))
        .with_hint("boot with security=selinux and a policy, or drop the label");
}

Result<void> set_context_for_exec(const std::string& context, pid_t host_pid) {
    return set_context(context, host_pid, "exec");
}

Result<void> set_context_for_keys(const std::string& context, pid_t host_pid) {
    return set_context(context, host_pid, "keycreate");
}

}  // namespace pinfold
