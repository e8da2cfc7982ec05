// A container's terminal, with real ptys: where it may come from, who owns it, and how it is set up.
#include "kernel/terminal.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;
namespace fs = std::filesystem;

namespace {

// Runs the body in a child process and returns what it returns: "" when all is well.
std::string in_child(const std::function<std::string()>& body) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        const std::string text = body();
        const bool told = ::write(writer.get(), text.data(), text.size()) == ssize_t(text.size());
        ::_exit(told ? 0 : 1);
    }
    writer.reset();
    const std::string text = read_all(reader.get(), "child").value();
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    return status == 0 ? text : concat("child ended with wait status ", status, " ", text);
}

template <class T>
std::string message_of(const Result<T>& result) {
    return result ? "no error" : concat(result.error().message, "|", result.error().hint);
}

// A root directory with a new devpts, in a mount namespace that ends with the child.
std::string with_devpts(const std::string& root, const char* options, const std::function<std::string(int)>& body) {
    return in_child([&]() -> std::string {
        if (::unshare(CLONE_NEWNS) < 0) return errno_error("unshare").message;
        if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return errno_error("private").message;
        const std::string place = root + "/dev/pts";
        if (::mount("devpts", place.c_str(), "devpts", 0, options) < 0) return errno_error("mount").message;
        const UniqueFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        return body(fd.get());
    });
}

constexpr const char* kUsual = "newinstance,ptmxmode=0666,mode=0620,gid=5";

struct RootDir : TempDir {
    RootDir() { fs::create_directories(file("dev/pts")); }
    UniqueFd open() const { return UniqueFd(::open(path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); }
};

Pty open_host_pty() {
    UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(master);
    REQUIRE(::unlockpt(master.get()) == 0);
    UniqueFd slave = open_pty_slave(master.get()).value();
    return {std::move(master), std::move(slave)};
}

bool same_mode(const termios& a, const termios& b) {
    return a.c_iflag == b.c_iflag && a.c_oflag == b.c_oflag && a.c_cflag == b.c_cflag && a.c_lflag == b.c_lflag &&
           std::memcmp(a.c_cc, b.c_cc, sizeof a.c_cc) == 0;
}

termios mode_of(int fd) {
    termios mode{};
    REQUIRE(::tcgetattr(fd, &mode) == 0);
    return mode;
}

}  // namespace

TEST_CASE("open_container_pty makes a pty of the devpts below the root") {
    if (::geteuid() != 0) SKIP_TEST("mounting a devpts needs root");
    const RootDir root;
    const std::string problem = with_devpts(root.path(), kUsual, [&](int root_fd) -> std::string {
        const Result<Pty> pty = open_container_pty(root_fd);
        if (!pty) return message_of(pty);
        struct stat slave {};
        struct stat devpts {};
        ::fstat(pty->slave.get(), &slave);
        ::stat(root.file("dev/pts").c_str(), &devpts);
        if (slave.st_dev != devpts.st_dev) return "the slave is of another devpts";
        if ((::fcntl(pty->slave.get(), F_GETFD) & FD_CLOEXEC) == 0) return "the slave survives exec";
        if ((::fcntl(pty->master.get(), F_GETFD) & FD_CLOEXEC) == 0) return "the master survives exec";
        char text[8];
        const bool sent = ::write(pty->slave.get(), "hi", 2) == 2;
        return sent && ::read(pty->master.get(), text, sizeof text) == 2 ? "" : "no bytes pass";
    });
    CHECK(problem == "");
}

TEST_CASE("open_container_pty refuses whatever is not a devpts") {
    const RootDir root;
    SUBCASE("no /dev/pts") { fs::remove(root.file("dev/pts")); }
    SUBCASE("an empty directory") {}
    SUBCASE("a regular file as ptmx") { std::ofstream(root.file("dev/pts/ptmx")) << "x"; }
    SUBCASE("a symlink to the host's ptmx") { fs::create_symlink("/dev/ptmx", root.file("dev/pts/ptmx")); }
    SUBCASE("/dev/pts as a symlink to the host's") {
        fs::remove(root.file("dev/pts"));
        fs::create_directory_symlink("/dev/pts", root.file("dev/pts"));
    }
    SUBCASE("/dev as a symlink to the host's") {
        fs::remove_all(root.file("dev"));
        fs::create_directory_symlink("/dev", root.file("dev"));
    }
    const Result<Pty> pty = open_container_pty(root.open().get());
    REQUIRE(!pty);
    CHECK(pty.error().message.find("/dev/pts in the container") != std::string::npos);
    CHECK(pty.error().hint == "mount devpts at /dev/pts");
}

TEST_CASE("open_container_pty refuses a symlinked /dev/pts even when it leads to a devpts inside the root") {
    if (::geteuid() != 0) SKIP_TEST("mounting a devpts needs root");
    const RootDir root;
    const std::string answer = with_devpts(root.path(), kUsual, [&](int root_fd) {
        fs::create_directory(root.file("other"));
        ::mount(root.file("dev/pts").c_str(), root.file("other").c_str(), nullptr, MS_MOVE, nullptr);
        fs::remove(root.file("dev/pts"));
        fs::create_directory_symlink("/other", root.file("dev/pts"));
        return message_of(open_container_pty(root_fd));
    });
    CHECK(answer.starts_with("open /dev/pts in the container: "));
    CHECK(answer.find("ELOOP") != std::string::npos);
}

TEST_CASE("open_container_pty refuses a ptmx that another mount covers") {
    if (::geteuid() != 0) SKIP_TEST("mounting a devpts needs root");
    const RootDir root;
    std::string cover;
    SUBCASE("a harmless device") { cover = "/dev/null"; }
    SUBCASE("the host's ptmx, which would give a pty of the host") { cover = "/dev/ptmx"; }
    SUBCASE("a regular file") {
        cover = root.file("file");
        std::ofstream(cover) << "x";
    }
    const std::string answer = with_devpts(root.path(), kUsual, [&](int root_fd) -> std::string {
        const std::string ptmx = root.file("dev/pts/ptmx");
        if (::mount(cover.c_str(), ptmx.c_str(), nullptr, MS_BIND, nullptr) < 0) return "no bind mount";
        return message_of(open_container_pty(root_fd));
    });
    CHECK(answer.starts_with("open /dev/pts/ptmx in the container: "));
}

TEST_CASE("open_container_pty says what to do about a ptmx without permissions") {
    if (::geteuid() != 0) SKIP_TEST("mounting a devpts needs root");
    const RootDir root;
    fs::permissions(root.path(), fs::perms(0755));
    const std::string answer = with_devpts(root.path(), "newinstance,ptmxmode=0000", [](int root_fd) -> std::string {
        if (::setuid(65534) < 0) return "setuid failed";
        return message_of(open_container_pty(root_fd));
    });
    CHECK(answer.starts_with("open /dev/pts/ptmx in the container: "));
    CHECK(answer.ends_with("|mount devpts with the options newinstance and ptmxmode=0666"));
}

TEST_CASE("attach_terminal makes the slave the controlling terminal and the three standard streams") {
    const Pty pty = open_host_pty();
    const std::string problem = in_child([&]() -> std::string {
        ::setsid();
        const Result<void> attached = attach_terminal(pty.slave.get());
        if (!attached) return message_of(attached);
        for (int fd = 0; fd < 3; ++fd) {
            if (::tcgetsid(fd) != ::getpid()) return concat("descriptor ", fd, " is not the controlling terminal");
            if (::fcntl(fd, F_GETFD) != 0) return concat("descriptor ", fd, " would not survive exec");
        }
        return ::write(1, "out", 3) == 3 && ::write(2, "err", 3) == 3 ? "" : "write failed";
    });
    CHECK(problem == "");
    std::string text;  // the kernel gives out what has arrived so far
    for (char part[16]; text.size() < 6;) {
        const ssize_t got = ::read(pty.master.get(), part, sizeof part);
        REQUIRE(got > 0);
        text.append(part, size_t(got));
    }
    CHECK(text == "outerr");
}

TEST_CASE("attach_terminal works with a slave that already has a standard number") {
    const Pty pty = open_host_pty();
    const std::string problem = in_child([&]() -> std::string {
        ::setsid();
        ::dup3(pty.slave.get(), 0, O_CLOEXEC);
        const Result<void> attached = attach_terminal(0);
        if (!attached) return message_of(attached);
        return ::fcntl(0, F_GETFD) == 0 ? "" : "descriptor 0 would not survive exec";
    });
    CHECK(problem == "");
}

TEST_CASE("attach_terminal fails without a session of one's own") {
    const Pty pty = open_host_pty();
    const std::string answer = in_child([&]() -> std::string {
        if (::getsid(0) == ::getpid()) return "a new child cannot lead a session";
        return message_of(attach_terminal(pty.slave.get()));
    });
    CHECK(answer.starts_with("make the terminal the controlling one (TIOCSCTTY): "));
}

TEST_CASE("a window size set on one end is read on the other") {
    const Pty pty = open_host_pty();
    REQUIRE(set_window_size(pty.master.get(), 33, 101));
    const Result<winsize> size = window_size(pty.slave.get());
    REQUIRE(size);
    CHECK(size->ws_row == 33);
    CHECK(size->ws_col == 101);
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    CHECK(!window_size(null.get()));
    CHECK(!set_window_size(null.get(), 1, 1));
}

TEST_CASE("RawMode is raw while it lives and restores what was there") {
    const Pty pty = open_host_pty();
    const termios before = mode_of(pty.slave.get());
    {
        Result<RawMode> raw = RawMode::enter(pty.slave.get());
        REQUIRE(raw);
        CHECK((mode_of(pty.slave.get()).c_lflag & (ICANON | ECHO | ISIG)) == 0);
        const RawMode moved = std::move(raw).value();
        CHECK((mode_of(pty.slave.get()).c_lflag & ICANON) == 0);
    }
    CHECK(same_mode(before, mode_of(pty.slave.get())));
}

TEST_CASE("RawMode can give the terminal back for a while") {
    const Pty pty = open_host_pty();
    const termios before = mode_of(pty.slave.get());
    RawMode raw = RawMode::enter(pty.slave.get()).value();
    raw.restore();
    CHECK(same_mode(before, mode_of(pty.slave.get())));
    REQUIRE(raw.apply());
    CHECK((mode_of(pty.slave.get()).c_lflag & ICANON) == 0);
    raw.restore();
    CHECK(same_mode(before, mode_of(pty.slave.get())));
}

TEST_CASE("RawMode leaves the terminal of another job alone") {
    const Pty pty = open_host_pty();
    const std::string problem = in_child([&]() -> std::string {
        ::setsid();
        if (::ioctl(pty.slave.get(), TIOCSCTTY, 0) < 0) return "no controlling terminal";
        return in_child([&]() -> std::string {
            ::setpgid(0, 0);             // a background job now, which a change of the terminal would stop,
            ::signal(SIGTTOU, SIG_IGN);  // or which would get away with it
            const Result<RawMode> raw = RawMode::enter(pty.slave.get());
            return raw ? "" : message_of(raw);
        });
    });
    CHECK(problem == "");
    CHECK((mode_of(pty.slave.get()).c_lflag & ICANON) != 0);
}

TEST_CASE("RawMode refuses what is no terminal") {
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    const Result<RawMode> raw = RawMode::enter(null.get());
    REQUIRE(!raw);
    CHECK(raw.error().code == ENOTTY);
}

TEST_CASE("reopen_terminal gives the same terminal without sharing flags") {
    const Pty pty = open_host_pty();
    const UniqueFd twin = reopen_terminal(pty.slave.get()).value();
    CHECK((::fcntl(twin.get(), F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(pty.slave.get(), F_GETFL) & O_NONBLOCK) == 0);
    REQUIRE(::write(twin.get(), "hi", 2) == 2);
    char text[8];
    CHECK(::read(pty.master.get(), text, sizeof text) == 2);
    CHECK(!reopen_terminal(pty.master.get()));  // would be a new pty
}

TEST_CASE("own_terminal changes the owner and not the group") {
    if (::geteuid() != 0) SKIP_TEST("chown needs root");
    const Pty pty = open_host_pty();
    struct stat before {};
    REQUIRE(::fstat(pty.slave.get(), &before) == 0);
    REQUIRE(own_terminal(pty.slave.get(), 1234));
    struct stat after {};
    REQUIRE(::fstat(pty.slave.get(), &after) == 0);
    CHECK(after.st_uid == 1234);
    CHECK(after.st_gid == before.st_gid);
    CHECK(!own_terminal(-1, 1234));
}

TEST_CASE("own_terminal tolerates a uid that the user namespace does not know") {
    const Pty pty = open_host_pty();
    const std::string answer = in_child([&]() -> std::string {
        if (::unshare(CLONE_NEWUSER) < 0) return "no user namespaces";
        return message_of(own_terminal(pty.slave.get(), 1234));
    });
    if (answer == "no user namespaces") SKIP_TEST("no user namespaces");
    CHECK(answer == "no error");
}
