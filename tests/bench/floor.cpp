// The floor: only the kernel calls that the benchmark's bundle needs, hard-wired, with no JSON, no heap and no choices.
// What a runtime spends above this program is its own; a change of the bundle in bundle.cpp belongs here too.
//
//   floor [--cgroup DIR] [--times] ROOTFS PROGRAM
//
// --cgroup makes the cgroup v2 group DIR with a device program, clones into it and removes it at the end.
// --times prints each step's name and microseconds to standard error.
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace {

constexpr int kMaxSteps = 40;

// Shared with the child, which fills in its part before it execs.
struct StepTimes {
    int count;
    struct {
        const char* name;
        int64_t at_ns;
    } steps[kMaxSteps];
};

StepTimes* step_times = nullptr;  // stays null without --times, so that steps cost one branch

void step_done(const char* name) {
    if (step_times == nullptr || step_times->count == kMaxSteps) return;
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    step_times->steps[step_times->count++] = {name, now.tv_sec * 1'000'000'000LL + now.tv_nsec};
}

int must(long result, const char* what) {
    if (result >= 0) return static_cast<int>(result);
    perror(what);
    _exit(125);
}

void bring_loopback_up() {
    const int control = must(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
    ifreq request{};
    memcpy(request.ifr_name, "lo", sizeof("lo"));
    request.ifr_flags = IFF_UP;
    must(ioctl(control, SIOCSIFFLAGS, &request), "loopback up");
    close(control);
}

struct Option {
    const char* key;
    const char* value;
};

template <int N>
int make_mount(const char* type, const Option (&options)[N], unsigned attributes) {
    const int context = must(fsopen(type, FSOPEN_CLOEXEC), type);
    for (const Option& option : options) {
        must(fsconfig(context, FSCONFIG_SET_STRING, option.key, option.value, 0), type);
    }
    must(fsconfig(context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0), type);
    const int mount = must(fsmount(context, FSMOUNT_CLOEXEC, attributes), type);
    close(context);
    return mount;
}

void place(int mount, int directory, const char* path) {
    must(move_mount(mount, "", directory, path, MOVE_MOUNT_F_EMPTY_PATH), path);
    close(mount);
}

void fill_dev(int dev) {
    static constexpr struct {
        const char* name;
        unsigned minor;
        unsigned major;
    } kNodes[] = {{"null", 3, 1}, {"zero", 5, 1}, {"full", 7, 1}, {"random", 8, 1}, {"urandom", 9, 1}, {"tty", 0, 5}};
    static constexpr Option kLinks[] = {{"fd", "/proc/self/fd"},
                                        {"stdin", "/proc/self/fd/0"},
                                        {"stdout", "/proc/self/fd/1"},
                                        {"stderr", "/proc/self/fd/2"},
                                        {"ptmx", "pts/ptmx"}};
    for (const auto& node : kNodes) {
        must(mknodat(dev, node.name, S_IFCHR | 0666, makedev(node.major, node.minor)), node.name);
    }
    for (const Option& link : kLinks) must(symlinkat(link.value, dev, link.key), link.key);
    for (const char* name : {"pts", "shm", "mqueue"}) must(mkdirat(dev, name, 0755), name);
}

constexpr unsigned kStrict = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

void mount_filesystems(int root) {
    place(make_mount("proc", {{"source", "proc"}}, 0), root, "proc");
    step_done("mount /proc");
    const int dev = make_mount("tmpfs", {{"source", "tmpfs"}, {"mode", "755"}, {"size", "65536k"}},
                               MOUNT_ATTR_NOSUID | MOUNT_ATTR_STRICTATIME);
    must(move_mount(dev, "", root, "dev", MOVE_MOUNT_F_EMPTY_PATH), "dev");
    step_done("mount /dev");
    fill_dev(dev);
    step_done("device nodes, links, directories");
    place(make_mount("devpts", {{"source", "devpts"}, {"ptmxmode", "0666"}, {"mode", "0620"}, {"gid", "5"}},
                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC),
          dev, "pts");
    step_done("mount /dev/pts");
    place(make_mount("tmpfs", {{"source", "shm"}, {"mode", "1777"}, {"size", "65536k"}}, kStrict), dev, "shm");
    step_done("mount /dev/shm");
    place(make_mount("mqueue", {{"source", "mqueue"}}, kStrict), dev, "mqueue");
    step_done("mount /dev/mqueue");
    close(dev);
    place(make_mount("sysfs", {{"source", "sysfs"}}, kStrict | MOUNT_ATTR_RDONLY), root, "sys");
    step_done("mount /sys");
    place(make_mount("cgroup2", {{"source", "cgroup"}}, kStrict | MOUNT_ATTR_RDONLY), root, "sys/fs/cgroup");
    step_done("mount /sys/fs/cgroup");
}

// One null device and one empty directory serve every masked path: a clone of a mount is cheaper than a new filesystem.
// The empty directory is placed, not closed: to close a mount that hangs nowhere waits for an RCU grace period.
void mask_paths(int root) {
    const int null_device = must(open_tree(root, "dev/null", OPEN_TREE_CLOEXEC), "dev/null");
    const int empty = make_mount("tmpfs", {{"source", "tmpfs"}}, kStrict | MOUNT_ATTR_RDONLY);
    must(move_mount(empty, "", root, "sys/firmware", MOVE_MOUNT_F_EMPTY_PATH), "sys/firmware");
    for (const char* path :
         {"proc/acpi", "proc/asound", "proc/kcore", "proc/keys", "proc/latency_stats", "proc/timer_list",
          "proc/timer_stats", "proc/sched_debug", "proc/scsi", "sys/devices/virtual/powercap"}) {
        struct stat target;
        if (fstatat(root, path, &target, AT_SYMLINK_NOFOLLOW) != 0) continue;
        const int cover = S_ISDIR(target.st_mode) ? empty : null_device;
        place(must(open_tree(cover, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH), path), root, path);
    }
    close(null_device);
    close(empty);
}

void make_paths_read_only(int root) {
    mount_attr read_only{};
    read_only.attr_set = MOUNT_ATTR_RDONLY;
    for (const char* path : {"proc/bus", "proc/fs", "proc/irq", "proc/sys", "proc/sysrq-trigger"}) {
        const int tree = open_tree(root, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (tree < 0) continue;
        must(mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &read_only, sizeof(read_only)), path);
        place(tree, root, path);
    }
}

void build_root(const char* rootfs) {
    must(mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr), "private propagation");
    step_done("private propagation");
    const int root = must(open_tree(AT_FDCWD, rootfs, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC), rootfs);
    mount_attr read_only{};
    read_only.attr_set = MOUNT_ATTR_RDONLY;
    must(mount_setattr(root, "", AT_EMPTY_PATH, &read_only, sizeof(read_only)), "read-only root");
    must(move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH), "root");
    step_done("root tree, read-only");
    mount_filesystems(root);
    mask_paths(root);
    step_done("masked paths");
    make_paths_read_only(root);
    step_done("read-only paths");
    must(fchdir(root), "chdir");
    must(syscall(SYS_pivot_root, ".", "."), "pivot_root");
    step_done("pivot_root");
    must(umount2(".", MNT_DETACH), "umount of the old root");
    must(chdir("/"), "chdir");
    close(root);
    step_done("umount of the old root");
}

void drop_privileges() {
    constexpr int kKept[] = {CAP_KILL, CAP_NET_BIND_SERVICE, CAP_AUDIT_WRITE};
    uint32_t mask = 0;
    for (const int capability : kKept) mask |= 1U << capability;
    const rlimit files{1024, 1024};
    must(setrlimit(RLIMIT_NOFILE, &files), "rlimit");
    for (int capability = 0; capability <= CAP_LAST_CAP; capability++) {
        const bool keep = capability < 32 && (mask >> capability & 1) != 0;
        if (!keep) prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // an older kernel knows fewer of them
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct sets[2] = {{mask, mask, mask}, {0, 0, 0}};
    must(syscall(SYS_capset, &header, sets), "capset");
    for (const int capability : kKept) must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0), "ambient");
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
}

[[noreturn]] void run_child(const char* rootfs, char** program) {
    step_done("clone3");
    umask(0);
    must(setsid(), "setsid");
    must(unshare(CLONE_NEWCGROUP), "unshare cgroup");
    must(sethostname("bench", 5), "hostname");
    step_done("cgroup namespace, hostname");
    bring_loopback_up();
    step_done("loopback");
    build_root(rootfs);
    umask(022);
    drop_privileges();
    must(syscall(SYS_close_range, 3, ~0U, 1U << 2), "close_range");
    step_done("rlimit, capabilities, no_new_privs");
    execv(program[0], program);
    must(-1, program[0]);
    _exit(125);
}

// Allows the default nodes' major numbers: 1 (memory), 5 (tty), 136 (pts). Its cost is that of any such short program.
void attach_device_program(int cgroup) {
    constexpr uint8_t kLoad = BPF_LDX | BPF_MEM | BPF_W;
    constexpr uint8_t kJumpIf = BPF_JMP | BPF_JEQ | BPF_K;
    constexpr uint8_t kSet = BPF_ALU64 | BPF_MOV | BPF_K;
    constexpr uint8_t kReturn = BPF_JMP | BPF_EXIT;
    const bpf_insn program[] = {{kLoad, 2, 1, 4, 0},     {kJumpIf, 2, 0, 4, 1}, {kJumpIf, 2, 0, 3, 5},
                                {kJumpIf, 2, 0, 2, 136}, {kSet, 0, 0, 0, 0},    {kReturn, 0, 0, 0, 0},
                                {kSet, 0, 0, 0, 1},      {kReturn, 0, 0, 0, 0}};
    bpf_attr load{};
    load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    load.insns = reinterpret_cast<uintptr_t>(program);
    load.insn_cnt = sizeof(program) / sizeof(program[0]);
    load.license = reinterpret_cast<uintptr_t>("");
    const int loaded = must(syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)), "device program");
    bpf_attr attach{};
    attach.target_fd = static_cast<uint32_t>(cgroup);
    attach.attach_bpf_fd = static_cast<uint32_t>(loaded);
    attach.attach_type = BPF_CGROUP_DEVICE;
    attach.attach_flags = BPF_F_ALLOW_MULTI;
    must(syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof(attach)), "attach device program");
    close(loaded);
}

int make_cgroup(const char* path) {
    must(mkdir(path, 0755), path);
    const int cgroup = must(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path);
    step_done("mkdir cgroup");
    attach_device_program(cgroup);
    step_done("device program");
    return cgroup;
}

int launch(const char* rootfs, char** program, int cgroup) {
    int pidfd = -1;
    clone_args arguments{};
    arguments.flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
    arguments.exit_signal = SIGCHLD;
    if (cgroup >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = static_cast<uint64_t>(cgroup);
    }
    if (must(syscall(SYS_clone3, &arguments, sizeof(arguments)), "clone3") == 0) run_child(rootfs, program);
    siginfo_t exited{};
    must(waitid(P_PIDFD, static_cast<id_t>(pidfd), &exited, WEXITED), "waitid");
    step_done("execve, payload, exit, wait");
    return exited.si_code == CLD_EXITED ? exited.si_status : 128 + exited.si_status;
}

void print_times() {
    for (int i = 1; i < step_times->count; i++) {
        const auto& step = step_times->steps[i];
        fprintf(stderr, "%s\t%.1f\n", step.name,
                static_cast<double>(step.at_ns - step_times->steps[i - 1].at_ns) / 1e3);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int next = 1;
    const char* cgroup_path = nullptr;
    bool times = false;
    if (argc > next + 1 && strcmp(argv[next], "--cgroup") == 0) {
        cgroup_path = argv[next + 1];
        next += 2;
    }
    if (argc > next && strcmp(argv[next], "--times") == 0) {
        times = true;
        next++;
    }
    if (argc < next + 2) return 2;
    if (times) {
        void* page = mmap(nullptr, sizeof(StepTimes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        step_times = static_cast<StepTimes*>(page);
        memset(page, 0, sizeof(StepTimes));
    }
    step_done("begin");
    const int cgroup = cgroup_path != nullptr ? make_cgroup(cgroup_path) : -1;
    const int status = launch(argv[next], argv + next + 1, cgroup);
    if (cgroup_path != nullptr) {
        must(rmdir(cgroup_path), "rmdir cgroup");
        step_done("rmdir cgroup");
    }
    if (times) print_times();
    return status;
}
