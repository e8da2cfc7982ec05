// The test's end of a pseudo-terminal.
#include "terminal.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include <array>

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

}  // namespace pinfold::integration
