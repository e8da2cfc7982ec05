// Descriptors on their way over unix sockets.
#include "kernel/fd_passing.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;
namespace fs = std::filesystem;

namespace {

struct SocketPair {
    UniqueFd left;
    UniqueFd right;
};

SocketPair socket_pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// bind() itself knows only short addresses: a long path is reached through its directory.
UniqueFd listen_at(const std::string& path) {
    const fs::path whole(path);
    const UniqueFd directory(::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string link = concat("/proc/self/fd/", directory.get(), "/", whole.filename().string());
    REQUIRE(link.size() < sizeof address.sun_path);
    link.copy(address.sun_path, link.size());
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(socket.get(), 1) == 0);
    return socket;
}

struct Received {
    UniqueFd fd;
    std::string text;
};

Received receive(int socket) {
    char text[4096];
    iovec part{text, sizeof text};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    REQUIRE(got > 0);
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    REQUIRE(header != nullptr);
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return {UniqueFd(fd), std::string(text, size_t(got))};
}

UniqueFd some_file() { return UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)); }

bool is_same_file(const UniqueFd& a, const UniqueFd& b) {
    struct stat left {};
    struct stat right {};
    return ::fstat(a.get(), &left) == 0 && ::fstat(b.get(), &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

}  // namespace

TEST_CASE("a descriptor sent arrives with the first byte of its text") {
    const SocketPair sockets = socket_pair();
    const UniqueFd file = some_file();
    REQUIRE(send_fd(sockets.left.get(), file.get(), "/dev/ptmx"));
    const Received received = receive(sockets.right.get());
    CHECK(received.text == "/dev/ptmx");
    CHECK(is_same_file(received.fd, file));
}

TEST_CASE("a text that is longer than a socket holds follows its descriptor") {
    SocketPair sockets = socket_pair();
    const UniqueFd file = some_file();
    const std::string text(1'000'000, 'x');
    std::thread sender([&] {
        CHECK(send_fd(sockets.left.get(), file.get(), text));
        sockets.left.reset();
    });
    Received received = receive(sockets.right.get());
    received.text += read_all(sockets.right.get(), "socket").value();
    sender.join();
    CHECK(received.text == text);
    CHECK(is_same_file(received.fd, file));
}

TEST_CASE("send_fd refuses an empty name and survives a receiver that is gone") {
    SocketPair sockets = socket_pair();
    CHECK(!send_fd(sockets.left.get(), 0, ""));
    sockets.right.reset();
    const Result<void> sent = send_fd(sockets.left.get(), 0, "/dev/ptmx");
    REQUIRE(!sent);
    CHECK(sent.error().code == EPIPE);
}

TEST_CASE("connect_to_socket reaches a listener at a path of any length") {
    const TempDir temp;
    std::string path = temp.file("a.sock");
    std::string link;
    SUBCASE("short") {}
    SUBCASE("longer than a socket address") {
        const std::string directory = concat(temp.path(), "/", std::string(120, 'a'), "/", std::string(120, 'b'));
        fs::create_directories(directory);
        path = directory + "/a.sock";
    }
    SUBCASE("through a symlink") {
        link = temp.file("link.sock");
        fs::create_symlink("a.sock", link);
    }
    const UniqueFd listener = listen_at(path);
    const UniqueFd client = connect_to_socket("the socket", link.empty() ? path : link).value();
    const UniqueFd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    REQUIRE(send_fd(client.get(), listener.get(), "x"));
    CHECK(is_same_file(receive(server.get()).fd, listener));
}

TEST_CASE("connect_to_socket names the path and the remedy") {
    const TempDir temp;
    const std::string path = temp.file("a.sock");
    SUBCASE("absent") {
        const Result<UniqueFd> socket = connect_to_socket("the socket", path);
        REQUIRE(!socket);
        CHECK(socket.error().code == ENOENT);
        CHECK(socket.error().message.starts_with(concat("connect to the socket '", path, "': ")));
        CHECK(socket.error().hint == "start the program that listens there first");
    }
    SUBCASE("nobody listens any more") {
        listen_at(path).reset();
        const Result<UniqueFd> socket = connect_to_socket("the socket", path);
        REQUIRE(!socket);
        CHECK(socket.error().message.find(path) != std::string::npos);
        CHECK(socket.error().hint == "no program listens on this path");
    }
    SUBCASE("a regular file") {
        std::ofstream(path) << "x";
        const Result<UniqueFd> socket = connect_to_socket("the socket", path);
        REQUIRE(!socket);
        CHECK(socket.error().message.find(path) != std::string::npos);
    }
}
