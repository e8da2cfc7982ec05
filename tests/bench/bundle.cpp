// The benchmark's bundle. What it asks of the kernel, floor.cpp does by hand: keep the two alike.
#include "bundle.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold::bench {

namespace {

constexpr std::string_view kConfig = R"json({
    "ociVersion": "1.0.2",
    "process": {
        "terminal": false,
        "user": {"uid": 0, "gid": 0},
        "args": [@program@],
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
        "resources": {@memory@"devices": [{"allow": false, "access": "rwm"}]},@seccomp@
        "namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"},
                       {"type": "cgroup"}],
        "maskedPaths": ["/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
                        "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
                        "/sys/devices/virtual/powercap"],
        "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
    }
}
)json";

void fill_in(std::string& text, std::string_view mark, std::string_view value) {
    text.replace(text.find(mark), mark.size(), value);
}

std::string config_text(const BundleOptions& options) {
    std::string text(kConfig);
    fill_in(text, "@program@", json_quoted(options.program));
    fill_in(text, "@cgroupsPath@", json_quoted(options.cgroups_path));
    fill_in(text, "@memory@",
            options.memory_limit > 0 ? concat("\"memory\": {\"limit\": ", options.memory_limit, "}, ") : "");
    fill_in(text, "@seccomp@", options.seccomp.empty() ? "" : concat("\n        \"seccomp\": ", options.seccomp, ","));
    return text;
}

Result<void> write_new_file(const std::string& path, std::string_view content, mode_t mode) {
    const UniqueFd file = TRY(open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, mode));
    for (std::size_t done = 0; done < content.size();) {
        const ssize_t written = ::write(file.get(), content.data() + done, content.size() - done);
        if (written < 0) return errno_error(concat("write ", quoted(path)));
        done += static_cast<std::size_t>(written);
    }
    return {};
}

Result<void> make_rootfs(const std::string& rootfs, const std::vector<std::string>& programs) {
    for (const char* path : {"", "/bin", "/dev", "/proc", "/sys"}) {
        if (::mkdir((rootfs + path).c_str(), 0755) != 0) return errno_error(concat("mkdir ", quoted(rootfs + path)));
    }
    const char* const names[] = {"/bin/true", "/bin/wait"};
    for (size_t i = 0; i < programs.size(); i++) {
        const std::string program = TRY(read_file(programs[i]));
        TRY(write_new_file(rootfs + names[i], program, 0755));
    }
    return {};
}

}  // namespace

Result<void> make_bundle(const BundleOptions& options) {
    if (::mkdir(options.directory.c_str(), 0755) != 0 && errno != EEXIST) {
        return errno_error(concat("mkdir ", quoted(options.directory)));
    }
    ::unlink((options.directory + "/config.json").c_str());
    TRY(write_new_file(options.directory + "/config.json", config_text(options), 0644));
    const std::string rootfs = options.directory + "/rootfs";
    if (::access(rootfs.c_str(), F_OK) == 0) return {};
    return make_rootfs(rootfs, {options.payload, options.waiter});
}

// No text in these sections has a brace in it.
Result<std::string> seccomp_section(const std::string& path) {
    const std::string text = TRY(read_file(path));
    const size_t begin = text.find('{', text.find("\"seccomp\":"));
    int depth = 0;
    for (size_t at = begin; at < text.size(); at++) {
        depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
        if (depth == 0) return text.substr(begin, at + 1 - begin);
    }
    return plain_error(concat(path, ": no seccomp section"));
}

}  // namespace pinfold::bench
