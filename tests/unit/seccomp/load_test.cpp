// Filters in the kernel: what a process under one can and cannot do.
#include "seccomp/load.hpp"

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include "calls.hpp"
#include "seccomp/reporting.hpp"
#include "support/temp_dir.hpp"

namespace pinfold::testing {

namespace {

// The wait status of a child that does the work and exits with its result.
int status_of_child(const std::function<int()>& work) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(work());
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
}

int status_under(const SeccompFilter& filter, const std::function<int()>& work) {
    return status_of_child([&] {
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 200;
        return load_seccomp(filter) ? work() : 201;
    });
}

// One denied call, by a thread that is not under the filter itself; the call's name.
std::string answer_denial(int listener, const SeccompFilter& plain) {
    seccomp_notif asked{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return "nothing";
    seccomp_notif_resp response{asked.id, 0, -denial_errno(plain.program, asked.data), 0};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response) != 0) return "nobody";
    return syscall_name(asked.data.arch, asked.data.nr);
}

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

}  // namespace

TEST_CASE("a loaded filter denies with the errno that the profile asks for") {
    const TempDir temp;
    const std::string path = temp.file("made");
    const SeccompFilter filter =
        compiled(profile("SCMP_ACT_ALLOW", {rule_errno({"mkdir", "mkdirat"}, "SCMP_ACT_ERRNO", 42)}));
    const int status = status_under(filter, [&] { return ::mkdir(path.c_str(), 0700) == 0 ? 0 : errno; });
    CHECK(exit_code(status) == 42);
    CHECK(::access(path.c_str(), F_OK) != 0);
}

TEST_CASE("a loaded filter looks at arguments") {
    const SyscallArg to_other{1, SIGUSR1, 0, "SCMP_CMP_EQ"};
    const SeccompFilter filter = compiled(profile("SCMP_ACT_ALLOW", {rule({"kill"}, "SCMP_ACT_ERRNO", {to_other})}));
    const int status = status_under(filter, [] {
        if (::kill(::getpid(), 0) != 0) return 1;
        return ::kill(::getpid(), SIGUSR1) == 0 ? 2 : errno == EPERM ? 0 : 3;
    });
    CHECK(exit_code(status) == 0);
}

TEST_CASE("a loaded filter kills") {
    const SeccompFilter filter = compiled(profile("SCMP_ACT_ALLOW", {rule({"getppid"}, "SCMP_ACT_KILL_PROCESS")}));
    const int status = status_under(filter, [] { return static_cast<int>(::getppid() & 0); });
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGSYS);
}

TEST_CASE("the kernel takes every flag that needs no listener, and the ENOSYS instructions") {
    // sigaltstack: AddressSanitizer calls it before a process exits.
    Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"exit_group", "sigaltstack", "statx"}, "SCMP_ACT_ALLOW")});
    section.flags = {"SECCOMP_FILTER_FLAG_TSYNC", "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW",
                     "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"};
    const int status = status_under(compiled(section), [] {
        if (::syscall(SYS_getppid) != -1 || errno != EPERM) return 1;
        return ::syscall(SYS_clone3, nullptr, 0) == -1 && errno == ENOSYS ? 0 : 2;
    });
    CHECK(exit_code(status) == 0);
}

TEST_CASE("a denial reaches the listener of a reporting filter, and has the answer that it would have had without") {
    const SeccompFilter plain = compiled(profile("SCMP_ACT_ALLOW", {rule_errno({"mount"}, "SCMP_ACT_ERRNO", EXDEV)}));
    const int status = status_of_child([&] {
        std::atomic<int> listener = -1;
        std::string seen;
        std::thread supervisor([&] {
            listener.wait(-1);
            seen = answer_denial(listener, plain);
        });
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 200;
        const Result<int> loaded = load_seccomp(with_reporting(plain));
        if (!loaded) return 201;
        listener = *loaded;
        listener.notify_one();
        const int code = ::syscall(SYS_mount, nullptr, nullptr, nullptr, 0, nullptr) == 0 ? 0 : errno;
        supervisor.join();
        return code != EXDEV ? 1 : seen != "mount" ? 2 : 0;
    });
    CHECK(exit_code(status) == 0);
}

TEST_CASE("without no_new_privs and without privilege the refusal says what is missing") {
    const SeccompFilter filter = compiled(profile("SCMP_ACT_ALLOW", {rule({"mkdir"}, "SCMP_ACT_ERRNO")}));
    const int status = status_of_child([&] {
        constexpr uid_t kNobody = 65534;
        if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) return 1;
        if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 0) return 2;
        const Result<int> result = load_seccomp(filter);
        if (result || result.error().code != EACCES) return 3;
        return result.error().hint.find("noNewPrivileges") != std::string::npos ? 0 : 4;
    });
    if (exit_code(status) == 2) SKIP_TEST("no_new_privs is set for this whole session");
    CHECK(exit_code(status) == 0);
}

TEST_CASE("a program too long for the kernel's counter is not cut") {
    SeccompFilter filter;
    filter.program.assign(65536 + 1, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    const Result<int> result = load_seccomp(filter);
    REQUIRE_FALSE(result);
    CHECK(result.error().message == "load seccomp filter: the program is too long");
}

}  // namespace pinfold::testing
