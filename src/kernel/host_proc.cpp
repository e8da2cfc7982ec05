// The host's /proc, and what is written there.
#include "kernel/host_proc.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "kernel/syscalls.hpp"

namespace pinfold {

Result<HostProc> HostProc::open() {
    UniqueFd fd = TRY(open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY));
    struct statfs info {};
    if (::fstatfs(fd.get(), &info) != 0) return errno_error("statfs /proc");
    if (info.f_type != PROC_SUPER_MAGIC) {
        return plain_error("the host's /proc is not a proc file system").with_hint("mount -t proc proc /proc");
    }
    return HostProc(std::move(fd));
}

Result<void> HostProc::write(const std::string& path, std::string_view text) const {
    open_how how{};
    how.flags = O_WRONLY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    const UniqueFd fd(sys_openat2(fd_.get(), path.c_str(), how));
    if (!fd) return errno_error(concat("open /proc/", path));
    return write_once(fd.get(), text, concat("/proc/", path));
}

Result<void> apply_sysctls(std::span<const SysctlSetting> settings) {
    if (settings.empty()) return {};
    const HostProc proc = TRY(HostProc::open());
    for (const SysctlSetting& setting : settings) TRY_IN(setting.key, proc.write(setting.path, setting.value));
    return {};
}

}  // namespace pinfold
