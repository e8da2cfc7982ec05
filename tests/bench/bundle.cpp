// The benchmark's bundle. What it asks of the kernel, floor.cpp does by hand: keep the two alike.
#include "bundle.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold::bench {

namespace {

constexpr std::string_view kConfig = R"json({
    "ociVersion": "1.0.2",
    "process": {
        "terminal": false,
        "user": {"uid": 0, "gid": 0},
        "args": ["/bin/true"],
        "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"],
        "cwd": "/",
        "capabilities": {
            "bounding": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
            "effective": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
            "inheritable": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
            "permitted": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
            "ambient": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]
        },
        "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}],
        "noNewPrivileges": true
    },
    "root": {"path": "rootfs", "readonly": true},
    "hostname": "bench",
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
         "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
         "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
         "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]},
        {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
         "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]}
    ],
    "linux": {
        "cgroupsPath": @cgroupsPath@,
        "resources": {"devices": [{"allow": false, "access": "rwm"}]},
        "namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"},
                       {"type": "cgroup"}],
        "maskedPaths": ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                        "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
                        "/sys/devices/virtual/powercap"],
        "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
    }
}
)json";

constexpr std::string_view kCgroupsPathMark = "@cgroupsPath@";

Result<void> write_new_file(const std::string& path, std::string_view content, mode_t mode) {
    const UniqueFd file = TRY(open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, mode));
    for (std::size_t done = 0; done < content.size();) {
        const ssize_t written = ::write(file.get(), content.data() + done, content.size() - done);
        if (written < 0) return errno_error(concat("write ", quoted(path)));
        done += static_cast<std::size_t>(written);
    }
    return {};
}

}  // namespace

Result<void> make_bundle(const BundleOptions& options) {
    const std::string rootfs = options.directory + "/rootfs";
    for (const std::string& path :
         {options.directory, rootfs, rootfs + "/bin", rootfs + "/dev", rootfs + "/proc", rootfs + "/sys"}) {
        if (::mkdir(path.c_str(), 0755) != 0) return errno_error(concat("mkdir ", quoted(path)));
    }
    const std::string payload = TRY(read_file(options.payload));
    TRY(write_new_file(rootfs + "/bin/true", payload, 0755));
    std::string config(kConfig);
    config.replace(config.find(kCgroupsPathMark), kCgroupsPathMark.size(), json_quoted(options.cgroups_path));
    return write_new_file(options.directory + "/config.json", config, 0644);
}

}  // namespace pinfold::bench
