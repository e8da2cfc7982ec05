// The AppArmor profile that a process gets with its next execve.
#include "kernel/apparmor.hpp"

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/host_proc.hpp"

namespace pinfold {

namespace {

bool host_has_apparmor() {
    const Result<std::string> enabled = read_file("/sys/module/apparmor/parameters/enabled");
    return enabled && enabled->starts_with('Y');
}

}  // namespace

Result<void> set_profile_for_exec(const std::string& profile, pid_t host_pid) {
    if (!host_has_apparmor()) {
        if (profile == "unconfined") return {};
        return plain_error(concat("profile ", quoted(profile), ": this host has no AppArmor"))
            .with_hint("boot with apparmor=1, or drop process.apparmorProfile");
    }
    const HostProc proc = TRY(HostProc::open());
    const std::string words = concat("exec ", profile);
    Result<void> written = proc.write(concat(host_pid, "/attr/apparmor/exec"), words);
    // Kernels before 5.8 have one file for all security modules.
    if (!written && written.error().code == ENOENT) written = proc.write(concat(host_pid, "/attr/exec"), words);
    if (written) return {};
    return std::move(written)
        .error()
        .within(concat("profile ", quoted(profile)))
        .with_hint("is the profile loaded? aa-status lists those that are");
}

}  // namespace pinfold
