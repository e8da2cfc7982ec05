// Trying things on descriptors: loopback, the terminal's size, copying.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "commands.hpp"
#include "report.hpp"

namespace probe {

namespace {

bool print_size() {
    winsize size{};
    if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0) return false;
    std::printf("%hux%hu\n", size.ws_row, size.ws_col);
    return std::fflush(stdout) == 0;
}

}  // namespace

Object connect_loopback_command(const Arguments& /*arguments*/) {
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    sockaddr* generic = reinterpret_cast<sockaddr*>(&address);
    const bool connected = ::bind(server, generic, sizeof address) == 0 && ::listen(server, 1) == 0 &&
                           ::getsockname(server, generic, &length) == 0 && ::connect(client, generic, length) == 0;
    const Object answer = success_if(connected);
    ::close(server);
    ::close(client);
    return answer;
}

Object winsize_command(const Arguments& /*arguments*/) {
    sigset_t changes;
    ::sigemptyset(&changes);
    ::sigaddset(&changes, SIGWINCH);
    ::sigprocmask(SIG_BLOCK, &changes, nullptr);
    const int signals = ::signalfd(-1, &changes, SFD_CLOEXEC);
    std::printf("READY\n");
    if (!print_size()) return failure();
    std::array<pollfd, 2> sources{pollfd{signals, POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0}};
    while (::poll(sources.data(), sources.size(), -1) > 0 && sources[1].revents == 0) {
        signalfd_siginfo info{};
        if (::read(signals, &info, sizeof info) < 0 || !print_size()) return failure();
    }
    return success();
}

Object cat_command(const Arguments& /*arguments*/) {
    std::array<char, 4096> buffer{};
    ssize_t count = 0;
    while ((count = ::read(STDIN_FILENO, buffer.data(), buffer.size())) > 0) {
        if (::write(STDOUT_FILENO, buffer.data(), static_cast<size_t>(count)) != count) return failure();
    }
    return success_if(count == 0);
}

Object read_fd_command(const Arguments& arguments) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(std::stoi(arguments[0]), buffer.data(), buffer.size());
    if (count < 0) return failure();
    return success().add("text", std::string(buffer.data(), static_cast<size_t>(count)));
}

// To a file: there may be nobody at standard output.
Object store_fds_command(const Arguments& arguments) {
    const std::string text = Object().add("fds", open_files()).text();
    const int file = ::open(arguments[0].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const bool stored = file >= 0 && ::write(file, text.data(), text.size()) == ssize_t(text.size());
    ::close(file);
    return success_if(stored);
}

}  // namespace probe
