// Answers go to standard output, whole, or there is an error.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/process.hpp"
#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "process/supervise.hpp"

namespace pinfold {

namespace {

// What can never be written to is not waited for: the other end of a pipe, a socket that listens, an eventfd.
Result<void> check_writable() {
    int listens = 0;
    socklen_t size = sizeof listens;
    const bool is_socket = ::getsockopt(STDOUT_FILENO, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0;
    if (is_socket && listens == 0) return {};  // for some, nothing is a message, too
    if (is_socket) return errno_error(ENOTCONN, "write to standard output");
    return ::write(STDOUT_FILENO, "", 0) == 0 ? Result<void>() : errno_error("write to standard output");
}

// Signals may be held back by now. Whoever sends one that asks us to end, and takes nothing for so long, does without
// the rest.
Result<void> await_reader() {
    constexpr int kPatience = 2000;  // milliseconds
    for (;;) {
        pollfd slot{STDOUT_FILENO, POLLOUT, 0};
        const int ready = ::poll(&slot, 1, kPatience);
        if (ready > 0) return {};
        if (ready == 0 && is_asked_to_end()) return plain_error("write to standard output: nobody takes it");
        if (ready < 0 && errno != EINTR) return errno_error("write to standard output: poll");
    }
}

}  // namespace

// Names and words from inside a container may be in it. A pipe that can be written to takes so much without waiting.
Result<void> print(std::string_view text) {
    if (standard_output_was_closed()) return errno_error(EBADF, "write to standard output");
    TRY(check_writable());
    const std::string shown = printable(text, kLineEnds);
    for (std::string_view rest = shown; !rest.empty();) {
        TRY(await_reader());
        const ssize_t count = ::write(STDOUT_FILENO, rest.data(), std::min<size_t>(rest.size(), PIPE_BUF));
        if (count > 0) rest.remove_prefix(size_t(count));
        else if (count < 0 && errno != EINTR && errno != EAGAIN) return errno_error("write to standard output");
    }
    return {};
}

std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
    std::vector<size_t> widths;
    for (const std::vector<std::string>& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size() + 2);
    }
    std::string text;
    for (const std::vector<std::string>& row : rows) {
        for (size_t i = 0; i + 1 < row.size(); ++i) text += row[i] + std::string(widths[i] - row[i].size(), ' ');
        text += row.back() + "\n";
    }
    return text;
}

}  // namespace pinfold
