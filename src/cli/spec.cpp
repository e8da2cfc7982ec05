// pinfold spec: a config.json to start from.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cli/limits.hpp"
#include "cli/verbs.hpp"
#include "cli/version.hpp"
#include "pinfold/generate.hpp"
#include "seccomp/profiles.hpp"

namespace pinfold {

namespace {

// The words between @ are filled in.
constexpr std::string_view kConfig = R"({
  "ociVersion": "@version@",
  "process": {
    "terminal": true,
    "user": { "uid": 0, "gid": 0 },
    "args": ["sh"],
    "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=xterm"],
    "cwd": "/",
    "capabilities": {
      "bounding": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
      "effective": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
      "permitted": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]
    },
    "rlimits": [{ "type": "RLIMIT_NOFILE", "soft": 1024, "hard": 1024 }],
    "noNewPrivileges": true
  },
  "root": { "path": "rootfs", "readonly": true },
  "hostname": "pinfold",
  "mounts": [
    {
      "destination": "/proc", "type": "proc", "source": "proc",
      "options": ["nosuid", "noexec", "nodev"]
    },
    {
      "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
      "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]
    },
    {
      "destination": "/dev/pts", "type": "devpts", "source": "devpts",
      "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"@tty_group@]
    },
    {
      "destination": "/dev/shm", "type": "tmpfs", "source": "shm",
      "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]
    },
    {
      "destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue",
      "options": ["nosuid", "noexec", "nodev"]
    },
    {
      "destination": "/sys", "type": "sysfs", "source": "sysfs",
      "options": ["nosuid", "noexec", "nodev", "ro"]
    },
    {
      "destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup",
      "options": ["nosuid", "noexec", "nodev", "relatime", "ro"]
    }
  ],
  "linux": {
@privileges@
    "namespaces": [
      { "type": "pid" }, { "type": "network" }, { "type": "ipc" }, { "type": "uts" }, { "type": "mount" },
      { "type": "cgroup" }@user_namespace@
    ],
    "maskedPaths": [
      "/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/kpagecgroup",
      "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/pagetypeinfo", "/proc/sched_debug",
      "/proc/scsi", "/proc/slabinfo", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
      "/sys/devices/virtual/powercap", "/sys/firmware"
    ],
    "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
  }
}
)";

std::string filled_in(std::string text, std::string_view blank, std::string_view value) {
    return text.replace(text.find(blank), blank.size(), value);
}

// The caller alone, as root inside. The terminals' group (5 everywhere) is nobody then, and a group of processes with
// limits is not the caller's to make.
std::string for_caller(std::string config) {
    const auto map = [](std::string_view name, id_t id) {
        return concat("    \"", name, "\": [{ \"containerID\": 0, \"hostID\": ", id, ", \"size\": 1 }],");
    };
    config = filled_in(std::move(config), "@tty_group@", "");
    config = filled_in(std::move(config), "@user_namespace@", R"(, { "type": "user" })");
    const std::string maps = concat(map("uidMappings", ::geteuid()), '\n', map("gidMappings", ::getegid()));
    return filled_in(std::move(config), "@privileges@", maps);
}

std::string for_root(std::string config) {
    config = filled_in(std::move(config), "@tty_group@", R"(, "gid=5")");
    config = filled_in(std::move(config), "@user_namespace@", "");
    return filled_in(std::move(config), "@privileges@",
                     R"(    "resources": { "devices": [{ "allow": false, "access": "rwm" }] },)");
}

// For code that is not trusted. A normal user has a single id to map, and other runtimes need it to be root inside.
Result<std::string> from_limits(const SpecOptions& options) {
    const WantedLimits wanted = TRY(resolve_limits(options.limits));
    if (wanted.network == Network::pasta) {
        return plain_error("--network pasta: a config.json can only say none or host")
            .with_hint("start pasta(1) in a createRuntime hook, or use pinfold sandbox");
    }
    GenerateOptions generated;
    if (!options.args.empty()) generated.args = options.args;
    generated.seccomp = TRY(find_profile(options.seccomp.empty() ? "default" : options.seccomp));
    if (options.rootless) {
        generated.user = {};
        generated.uid_mappings = {{0, ::geteuid(), 1}};
        generated.gid_mappings = {{0, ::getegid(), 1}};
    }
    return config_json(generate(wanted.limits, generated));
}

// It is there whole or not at all, and never in another file's place.
Result<void> write_new(const std::string& directory, const char* name, std::string_view text) {
    const UniqueFd dir = TRY_IN("bundle", open_at(AT_FDCWD, directory, O_DIRECTORY | O_PATH));
    Result<void> made = make_file(dir.get(), name, text, 0666);
    if (made) return made;
    if (made.error().code != EEXIST) return std::move(made).error().within(directory);
    return plain_error(concat(directory, '/', name, " is there already"))
        .with_hint("remove it, or name another directory with --bundle");
}

}  // namespace

Result<int> verb_spec(const SpecOptions& options, const CommandLine& /*line*/) {
    std::string config;
    if (options.limits.any()) {
        config = TRY(from_limits(options));
    } else {
        if (!options.args.empty()) return plain_error("a program needs --limits, or one of the limits");
        config = filled_in(std::string(kConfig), "@version@", kSpecVersion);
        config = options.rootless ? for_caller(std::move(config)) : for_root(std::move(config));
    }
    TRY(write_new(options.bundle, "config.json", config));
    return 0;
}

}  // namespace pinfold
