// The test's end of a pseudo-terminal.
#include "terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>

#include "process.hpp"
#include "support/testing.hpp"

namespace pinfold::integration {

Terminal::Terminal(unsigned short rows, unsigned short columns)
    : master_(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(::grantpt(master_.get()) == 0);
    REQUIRE(::unlockpt(master_.get()) == 0);
    std::array<char, 64> name{};
    REQUIRE(::ptsname_r(master_.get(), name.data(), name.size()) == 0);
    slave_ = UniqueFd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    REQUIRE(slave_.get() >= 0);
    resize(rows, columns);
}

termios Terminal::settings() const {
    termios out{};
    REQUIRE(::tcgetattr(slave_.get(), &out) == 0);
    return out;
}

void Terminal::resize(unsigned short rows, unsigned short columns) const {
    const winsize size{rows, columns, 0, 0};
    REQUIRE(::ioctl(master_.get(), TIOCSWINSZ, &size) == 0);
}

void Terminal::type(const std::string& text) const {
    REQUIRE(::write(master_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

std::string Terminal::read_line() {
    size_t end = std::string::npos;
    while ((end = unread_.find('\n')) == std::string::npos) {
        std::array<char, 4096> buffer{};
        if (!await_readable(master_.get())) FAIL("no line came from the terminal; so far: " << unread_);
        const ssize_t count = ::read(master_.get(), buffer.data(), buffer.size());
        if (count <= 0) FAIL("the terminal was closed; so far: " << unread_);
        unread_.append(buffer.data(), static_cast<size_t>(count));
    }
    std::string line = unread_.substr(0, end);
    unread_.erase(0, end + 1);
    while (!line.empty() && line.back() == '\r') line.pop_back();
    return line;
}

void Terminal::await_line(const std::string& wanted) {
    while (read_line() != wanted) continue;
}

DescriptorSocket::DescriptorSocket(const std::filesystem::path& path)
    : path_(path), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
}

UniqueFd DescriptorSocket::receive(std::string* text_out) const {
    REQUIRE(await_readable(listener_.get()));
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> text{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec data{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    REQUIRE(await_readable(connection.get()));
    const ssize_t got = ::recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC);
    REQUIRE(got >= 0);
    if (text_out != nullptr) text_out->assign(text.data(), size_t(got));
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    REQUIRE(header != nullptr);
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return UniqueFd(fd);
}

}  // namespace pinfold::integration
