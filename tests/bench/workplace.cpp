// Where the benchmark works.
#include "workplace.hpp"

#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/strings.hpp"

namespace pinfold::bench {

namespace {

constexpr const char* kCgroup = "/sys/fs/cgroup";
constexpr const char* kHybrid = "/sys/fs/cgroup/unified";

bool is_cgroup2(const char* path) {
    struct statfs info {};
    return ::statfs(path, &info) == 0 && info.f_type == CGROUP2_SUPER_MAGIC;
}

}  // namespace

Result<Workplace> Workplace::set_up() {
    if (::geteuid() != 0) return plain_error("the benchmark makes namespaces and cgroups").with_hint("run it as root");
    if (::unshare(CLONE_NEWNS) != 0) return errno_error("unshare mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return errno_error("make mounts private");
    char name[] = "/tmp/pinfold-bench.XXXXXX";
    if (::mkdtemp(name) == nullptr) return errno_error(concat("mkdtemp ", name));
    Workplace workplace;
    workplace.directory_ = name;
    if (::mount("tmpfs", name, "tmpfs", 0, "mode=755") != 0) return errno_error(concat("mount tmpfs on ", name));
    TRY(workplace.choose_cgroup_view());
    workplace.check_memlock();
    return workplace;
}

// The directory goes with the new owner: only that one removes it.
Workplace::Workplace(Workplace&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      has_cgroup2_(other.has_cgroup2_),
      has_own_view_(other.has_own_view_),
      can_raise_memlock_(other.can_raise_memlock_),
      notes_(std::move(other.notes_)) {}

Workplace::~Workplace() {
    if (directory_.empty()) return;
    ::umount2(directory_.c_str(), MNT_DETACH);
    ::rmdir(directory_.c_str());
}

// crun refuses a hybrid layout, and figures of v1 and v2 do not compare. The bind mount exists in our namespace only.
Result<void> Workplace::choose_cgroup_view() {
    if (is_cgroup2(kHybrid) && !is_cgroup2(kCgroup)) {
        if (::mount(kHybrid, kCgroup, nullptr, MS_BIND, nullptr) != 0) return errno_error(concat("bind ", kHybrid));
        has_own_view_ = true;
        notes_.push_back(concat("hybrid cgroups: all variants see only ", kHybrid, ", as ", kCgroup));
    }
    has_cgroup2_ = is_cgroup2(kCgroup);
    if (!has_cgroup2_) notes_.push_back("no cgroup v2 hierarchy: runtimes use v1, which the floor does not");
    return {};
}

void Workplace::leave_cgroup_view() {
    if (std::exchange(has_own_view_, false)) ::umount2(kCgroup, MNT_DETACH);
}

Result<std::string> Workplace::copy(const std::string& program, const std::string& name) const {
    if (program.empty()) return std::string();
    const std::string path = concat(directory_, "/", name);
    std::error_code failed;
    std::filesystem::copy_file(program, path, failed);
    if (failed) return plain_error(concat("copy ", program, ": ", failed.message()));
    return path;
}

void Workplace::check_memlock() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return;
    const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
    can_raise_memlock_ = ::setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0;
    if (can_raise_memlock_) {
        ::setrlimit(RLIMIT_MEMLOCK, &limit);
        return;
    }
    notes_.push_back(
        "no CAP_SYS_RESOURCE: a seccomp filter answers crun's setrlimit(MEMLOCK) with success where it makes a cgroup");
}

}  // namespace pinfold::bench
