// Hostile jobs that reach for what is not theirs: the host's files, network, kernel and processes, other rights.
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <sstream>

#include "hostile.hpp"

using namespace pinfold::integration;

namespace {

// Each script names what it has reached.
void check_nothing(const Attempt& attempt) {
    CHECK(attempt.out() == "");
    CHECK(attempt.err() == "");
}

struct Call {
    const char* name;
    long number;
    std::vector<unsigned long> arguments = {};
};

const Call kForbidden[] = {
    {"mount", SYS_mount},
    {"umount2", SYS_umount2},
    {"pivot_root", SYS_pivot_root},
    {"chroot", SYS_chroot},
    {"fsopen", SYS_fsopen},
    {"open_tree", SYS_open_tree},
    {"move_mount", SYS_move_mount},
    {"mount_setattr", SYS_mount_setattr},
    {"unshare", SYS_unshare, {CLONE_NEWUSER}},
    {"setns", SYS_setns, {0, CLONE_NEWNET}},
    {"clone", SYS_clone, {CLONE_NEWUSER | 17}},
    {"ptrace", SYS_ptrace, {16, 1}},
    {"process_vm_readv", SYS_process_vm_readv, {1}},
    {"process_vm_writev", SYS_process_vm_writev, {1}},
    {"pidfd_getfd", SYS_pidfd_getfd},
    {"kcmp", SYS_kcmp, {1, 1}},
    {"bpf", SYS_bpf},
    {"perf_event_open", SYS_perf_event_open},
    {"userfaultfd", SYS_userfaultfd},
    {"io_uring_setup", SYS_io_uring_setup, {8}},
    {"io_uring_enter", SYS_io_uring_enter},
    {"keyctl", SYS_keyctl, {KEYCTL_GET_KEYRING_ID, static_cast<unsigned long>(KEY_SPEC_USER_KEYRING)}},
    {"add_key", SYS_add_key},
    {"request_key", SYS_request_key},
    {"open_by_handle_at", SYS_open_by_handle_at},
    {"name_to_handle_at", SYS_name_to_handle_at},
    {"fanotify_init", SYS_fanotify_init},
    {"kexec_load", SYS_kexec_load},
    {"init_module", SYS_init_module},
    {"finit_module", SYS_finit_module},
    {"delete_module", SYS_delete_module},
    {"reboot", SYS_reboot},
    {"swapon", SYS_swapon},
    {"swapoff", SYS_swapoff},
    {"settimeofday", SYS_settimeofday},
    {"clock_settime", SYS_clock_settime},
    {"adjtimex", SYS_adjtimex},
    {"sethostname", SYS_sethostname},
    {"setdomainname", SYS_setdomainname},
    {"acct", SYS_acct},
    {"quotactl", SYS_quotactl},
    {"syslog", SYS_syslog, {3}},
    {"personality", SYS_personality, {ADDR_NO_RANDOMIZE}},
    {"mknodat", SYS_mknodat, {0, 0, S_IFBLK | 0600, 0x800}},
    {"ioctl", SYS_ioctl, {0, TIOCSTI}},
    {"socket", SYS_socket, {AF_PACKET, SOCK_RAW}},
    {"shmget", SYS_shmget},
    {"mbind", SYS_mbind},
#ifdef __x86_64__
    {"iopl", SYS_iopl, {3}},
    {"ioperm", SYS_ioperm},
    {"modify_ldt", SYS_modify_ldt},
#endif
};

// Each of the families twice: one attempt would not tell a count from a list.
const int kFamilies[] = {AF_INET, AF_INET6, AF_PACKET, AF_NETLINK, AF_VSOCK, AF_ALG, AF_BLUETOOTH, AF_KEY, AF_XDP};

Command in_turn(const std::vector<Call>& calls) {
    Command command = {"/probe"};
    for (const Call& call : calls) {
        if (command.size() > 1) command.emplace_back(";");
        command.insert(command.end(), {"syscall", std::to_string(call.number)});
        for (const unsigned long argument : call.arguments) command.push_back(std::to_string(argument));
    }
    return command;
}

std::vector<std::string> names_of(std::span<const Call> calls) {
    std::vector<std::string> names;
    for (const Call& call : calls) names.emplace_back(call.name);
    return names;
}

std::vector<Call> sockets_of_families() {
    std::vector<Call> calls;
    for (const int family : kFamilies) {
        calls.insert(calls.end(), 2, {"socket", SYS_socket, {unsigned(family), SOCK_RAW}});
    }
    return calls;
}

// The first id of the sandbox's range, as the host has it: what is root in there.
uid_t root_inside(const Bundle& bundle, const SpawnOptions& spawn) {
    const Ended ended = run_job(bundle, {{}, {"cat", "/proc/self/uid_map"}, spawn});
    std::istringstream map(ended.out);
    uid_t inside = 0, outside = 0;
    map >> inside >> outside;
    REQUIRE_MESSAGE(map, ended.err);
    return outside;
}

void give_capabilities(const fs::path& program, uid_t root) {
    vfs_ns_cap_data data{};
    data.magic_etc = VFS_CAP_REVISION_3 | VFS_CAP_FLAGS_EFFECTIVE;
    data.data[0].permitted = 1u << CAP_NET_RAW | 1u << CAP_SETUID;
    data.rootid = root;
    REQUIRE(::setxattr(program.c_str(), "security.capability", &data, sizeof data, 0) == 0);
}

}  // namespace

TEST_CASE("hostile: jobs that look for the host's secrets, or write to it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    run_attacks({
        {.name = "secrets", .command = {"@secrets.pl"}, .check = check_nothing},
        {.name = "settings and programs", .command = {"@writes.pl"}, .check = check_nothing},
        {.name = "the same as root inside",
         .options = {"--user", "0"},
         .command = {"@writes.pl"},
         .check = check_nothing},
        {.name = "mounts that could be written to, or give rights",
         .command = {"awk", "$5 !~ \"^/(dev|proc)(/|$)\" && ($6 ~ /^rw/ || $6 !~ /nosuid.*nodev/) { print $5 }",
                     "/proc/self/mountinfo"},
         .check = [](const Attempt& attempt) { CHECK(attempt.out() == "/tmp\n/workspace\n"); }},
        {.name = "the kernel's settings",
         .command = {"awk", "$5 == \"/proc/sys\" && $6 ~ /^ro/ { print $5 }", "/proc/self/mountinfo"},
         .check = [](const Attempt& attempt) { CHECK(attempt.out() == "/proc/sys\n"); }},
        {.name = "links", .command = {"@links.pl"}, .check = check_nothing},
        {.name = "the first process's environment and command line",
         .command = {"sh", "-c", "cat /proc/1/environ; tr -d '\\0' < /proc/1/cmdline; ls /proc/self/fd | wc -l"},
         .end = kFine,
         .check = [](const Attempt& attempt) { CHECK(attempt.out() == "4\n"); }},
        {.name = "its own program's file",
         .command = {"/probe", "write", "/proc/self/exe", "x", ";", "write", "/proc/1/exe", "x"},
         .check =
             [](const Attempt& attempt) {
                 CHECK(attempt.answer(0)["ok"] == false);
                 CHECK(attempt.answer(1)["errno"] == "EACCES");
             }},
    });
}

TEST_CASE("hostile: jobs that knock at the network") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    run_attacks({
        {.name = "with the profile of a sandbox without a network", .command = {"@network.pl"}, .check = check_nothing},
        {.name = "with a profile that allows it",
         .options = {"--seccomp", "network"},
         .command = {"@network.pl"},
         .check = check_nothing},
        {.name = "every family of sockets",
         .command = in_turn(sockets_of_families()),
         .denied = {"socket"},
         .check = [](const Attempt& attempt) { CHECK(attempt.denials("socket") == 2 * std::size(kFamilies)); }},
        {.name = "raw packets, with a profile that allows some",
         .options = {"--seccomp", "network"},
         .command = in_turn({{"socket", SYS_socket, {AF_INET, SOCK_RAW, 1}},
                             {"socket", SYS_socket, {AF_PACKET, SOCK_RAW, 0x300}},
                             {"socket", SYS_socket, {AF_VSOCK, SOCK_STREAM}}}),
         .denied = {"socket"},
         .check =
             [](const Attempt& attempt) {
                 for (size_t i = 0; i < 3; ++i) CHECK(attempt.answer(i)["ok"] == false);
             }},
    });
}

TEST_CASE("hostile: jobs that make forbidden calls") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    run_attacks({
        {.name = "each of them",
         .command = in_turn({std::begin(kForbidden), std::end(kForbidden)}),
         .denied = names_of(kForbidden),
         .check =
             [](const Attempt& attempt) {
                 for (size_t i = 0; i < std::size(kForbidden); ++i) {
                     INFO(std::string(kForbidden[i].name));
                     CHECK(attempt.answer(i)["errno"] == "EPERM");
                     CHECK(attempt.denials(kForbidden[i].name) == 1);
                 }
             }},
        {.name = "the clone whose flags no filter sees",
         .command = in_turn({{"clone3", SYS_clone3}}),
         .check = [](const Attempt& attempt) { CHECK(attempt.answer(0)["errno"] == "ENOSYS"); }},
#ifdef __x86_64__
        {.name = "by the numbers of another interface",
         .command = in_turn({{"mount", 0x40000000 | SYS_mount}}),
         .end = {"signaled", 128 + SIGSYS}},
#endif
        {.name = "without an end",
         .options = {"--timeout", brief()},
         .command = {"perl", "-e", "syscall(" + std::to_string(SYS_umount2) + ", 0, 0) while 1"},
         .end = kTimedOut,
         .denied = {"umount2"},
         .check =
             [](const Attempt& attempt) {
                 // From some number on each costs a millisecond, or pinfold would be busy for as long as the job is.
                 const uint64_t count = attempt.denials("umount2");
                 CHECK(count > 100);
                 CHECK(double(count) < 20000 + 1000 * attempt.used("wall_seconds"));
                 CHECK(attempt.used("wall_seconds") < brief_seconds() + (pinfold::testing::slow_machine() ? 30 : 2));
             }},
    });
}

TEST_CASE("hostile: jobs that fight other processes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    run_attacks({
        {.name = "every process that there is",
         .command = {"perl", "-e", "kill(9, -1); kill(9, $_) for 1, 3 .. 40000; kill(19, 1); print 'alive'"},
         .check = [](const Attempt& attempt) { CHECK(attempt.out() == "alive"); },
         .beside = true},
        {.name = "its parent",
         .command = {"sh", "-c", "kill -KILL $PPID; kill -STOP $PPID; echo alive; exit 3"},
         .end = {"exited", 3},
         .check = [](const Attempt& attempt) { CHECK(attempt.out() == "alive\n"); }},
        {.name = "the first process's memory and state",
         .command = {"/probe", "read", "/proc/1/mem", ";", "read", "/proc/1/stack", ";", "read", "/proc/1/syscall", ";",
                     "list", "/proc/1/root"},
         .check =
             [](const Attempt& attempt) {
                 for (size_t i = 0; i < 4; ++i) CHECK(attempt.answer(i)["ok"] == false);
             }},
    });
}

TEST_CASE("hostile: mounts below a directory that is bound are bound no better") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const As as : {As::root, As::user}) {
        CAPTURE((as == As::user));
        Bundle bundle;
        const fs::path below = bundle.host() / "below";
        fs::create_directory(below);
        const SpawnOptions spawn = as == As::user ? normal_user(bundle) : SpawnOptions{};
        const MountGuard mount("tmpfs", below, "tmpfs", 0);
        const std::string options = "$5 == \"/bound/below\" { print substr($6, 1, 15) }";
        for (const auto& [option, wanted] :
             {std::pair("--ro-bind", "ro,nosuid,nodev\n"), {"--bind", "rw,nosuid,nodev\n"}}) {
            const Ended ended = run_job(
                bundle,
                {{option, bundle.host().string() + ":/bound"}, {"awk", options, "/proc/self/mountinfo"}, spawn});
            CHECK_MESSAGE(ended.out == wanted, ended.out << ended.err);
        }
    }
}

TEST_CASE("hostile: programs with more rights than their caller give none") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        const SpawnOptions spawn = rootless ? normal_user(bundle) : SpawnOptions{};
        const fs::path programs = bundle.host() / "programs";
        fs::create_directory(programs);
        for (const char* name : {"setuid", "capable"}) fs::copy_file(bundle.rootfs() / "probe", programs / name);
        const uid_t root = root_inside(bundle, spawn);
        REQUIRE(::chown((programs / "setuid").c_str(), root, root) == 0);
        REQUIRE(::chmod((programs / "setuid").c_str(), 06755) == 0);
        give_capabilities(programs / "capable", root);
        for (const char* name : {"setuid", "capable"}) {
            INFO(std::string(name));
            const Judged judged = judge_job(
                bundle,
                {{"--ro-bind", programs.string() + ":/programs"}, {"/programs/" + std::string(name), "report"}, spawn});
            const json report = json::parse(std::string(judged.result["stdout"]));
            CHECK(report["credentials"]["uid"] == json({1000, 1000, 1000, 1000}));
            CHECK(report["credentials"]["gid"] == json({1000, 1000, 1000, 1000}));
            CHECK(report["capabilities"]["effective"] == json::array());
            CHECK(report["capabilities"]["permitted"] == json::array());
        }
    }
}
