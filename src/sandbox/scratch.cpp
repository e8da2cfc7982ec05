// A file without a name, a loop device that forgets it with its last user, and ext4 on that: a size that holds on every
// file system of the host's, without quotas that somebody would have to set up.
#include "sandbox/scratch.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/mounts.hpp"
#include "policy/check_request.hpp"
#include "policy/host_path.hpp"
#include "policy/path_rules.hpp"

namespace pinfold {

namespace {

constexpr const char* kSystemsOwn = "/var/tmp";

Result<UniqueFd> make_image(int directory, uint64_t size) {
    UniqueFd image = TRY_IN("make a file for it", open_at(directory, ".", O_TMPFILE | O_RDWR, 0600));
    const auto bytes = static_cast<off_t>(size);
    if (::fallocate(image.get(), 0, 0, bytes) == 0) return image;
    if (errno != EOPNOTSUPP) return errno_error(concat("reserve ", size, " bytes"));
    if (::ftruncate(image.get(), bytes) != 0) return errno_error(concat("make it ", size, " bytes long"));
    return image;
}

// Without a journal: after a crash nobody wants it back.
Result<void> make_ext4(int image) {
    const char* const programs[] = {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"};
    for (const char* program : programs) {
        if (::access(program, X_OK) != 0) continue;
        const std::string file = concat("/proc/", ::getpid(), "/fd/", image);
        const pid_t pid = TRY(spawn({program, "-q", "-F", "-m", "0", "-O", "^has_journal,^resize_inode", "-E",
                                     "lazy_itable_init=1,nodiscard", file}));
        if (const int status = reap(pid); status != 0) return plain_error(concat(program, " exited with ", status));
        return {};
    }
    return plain_error("there is no mkfs.ext4").with_hint("install the package e2fsprogs");
}

// Held until it is mounted: the file goes with the last who has it open.
struct LoopDevice {
    UniqueFd fd;
    std::string path;
};

// Another process may take the free one first.
Result<LoopDevice> attach(int image) {
    constexpr int kTries = 100;
    const Result<UniqueFd> control = open_at(AT_FDCWD, "/dev/loop-control", O_RDWR);
    if (!control) return Error(control.error()).with_hint("the kernel's module loop is needed");
    for (int i = 0; i < kTries; ++i) {
        const int number = ::ioctl(control->get(), LOOP_CTL_GET_FREE);
        if (number < 0) return errno_error("find a free loop device");
        std::string path = concat("/dev/loop", number);
        UniqueFd device = TRY(open_at(AT_FDCWD, path, O_RDWR));
        loop_config config{};
        config.fd = static_cast<uint32_t>(image);
        config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
        if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return LoopDevice{std::move(device), std::move(path)};
        if (errno != EBUSY) return errno_error(concat("set up ", path));
    }
    return plain_error("no loop device stays free");
}

}  // namespace

Result<Scratch> Scratch::open(const std::string& place, const Policies& policies) {
    if (::geteuid() != 0)
        return plain_error("--scratch takes root: nobody else may mount a file system")
            .with_hint("bind a directory of yours, by --bind; its size is not limited");
    if (::unshare(CLONE_NEWNS) != 0) return errno_error("--scratch: get a mount namespace");
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        return errno_error("--scratch: cut it off from the host's");
    const std::string path = place == "disk" ? kSystemsOwn : place;
    // What lies there is covered, for us.
    for (const std::string& one : places_on_the_way(path)) {
        if (is_within(one, "/usr") || is_within("/usr", one))
            return plain_error(concat("--scratch ", quoted(place), ": programs of this machine lie there"));
    }
    return Scratch(
        TRY_IN(concat("--scratch ", quoted(place)), open_allowed(policies, concat(path, "/."), Access::write)));
}

Result<UniqueFd> Scratch::make(uint64_t size) const {
    const UniqueFd image = TRY(make_image(directory_.get(), size));
    TRY(make_ext4(image.get()));
    const LoopDevice device = TRY(attach(image.get()));
    UniqueFd tree = TRY(
        make_filesystem({.type = "ext4", .source = device.path, .attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV}));
    if (::unlinkat(tree.get(), "lost+found", AT_REMOVEDIR) != 0) return errno_error("empty it");
    // What is to be bound has to be mounted somewhere, and not over "/", where it would count as a chroot: the kernel
    // then makes no user namespace.
    TRY(place_mount(tree.get(), directory_.get()));
    return tree;
}

}  // namespace pinfold
