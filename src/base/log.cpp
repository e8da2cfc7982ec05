// The one logger. It is the project's only global: every layer may warn, and a child process must keep
// writing to the same place without being handed anything.
#include "base/log.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/clock.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

namespace {

struct Logger {
    UniqueFd file;
    bool json = false;
    bool debug = false;
    bool silent = false;
    int64_t started = monotonic_ns();
};

Logger& logger() {
    static Logger instance;
    return instance;
}

// One write() per line, so that lines of parent and child do not mix. Nothing can be done if it fails. Names from
// inside a container may be in it.
void write_line(int fd, std::string_view text) {
    const std::string line = concat(printable(text, kLineEnds), '\n');
    [[maybe_unused]] const ssize_t written = ::write(fd, line.data(), line.size());
}

std::string file_line(std::string_view level, std::string_view message) {
    const std::string time = rfc3339_now();
    if (logger().json) {
        return concat("{\"level\":\"", level, "\",\"msg\":", json_quoted(message), ",\"time\":\"", time, "\"}");
    }
    return concat("time=\"", time, "\" level=", level, " msg=", json_quoted(message));
}

// A reader that has stopped reading must not hold up a process that has something else to do: then the line is lost. So
// it is where the reader has gone, before a signal tells. A pipe that has room takes a piece of this size without
// waiting.
void write_line_in_time(int fd, std::string line) {
    constexpr int kPatience = 1000;  // milliseconds
    constexpr size_t kPiece = 4096;
    line += '\n';
    for (std::string_view left = line; !left.empty();) {
        pollfd slot{fd, POLLOUT, 0};
        if (::poll(&slot, 1, kPatience) == 0 || (slot.revents & POLLERR) != 0) return;
        const ssize_t written = ::write(fd, left.data(), std::min(left.size(), kPiece));
        if (written < 0 && errno != EINTR && errno != EAGAIN) return;
        if (written > 0) left.remove_prefix(size_t(written));
    }
}

void log_line(std::string_view level, std::string_view message) {
    if (logger().silent) return;
    if (logger().file) write_line_in_time(logger().file.get(), file_line(level, message));
    else if (logger().json) write_line_in_time(STDERR_FILENO, file_line(level, message));
    else write_line_in_time(STDERR_FILENO, concat("pinfold: ", level, ": ", message));
}

}  // namespace

Result<void> open_log(const LogOptions& options) {
    logger().debug = options.debug;
    logger().json = options.json;
    if (options.file.empty()) return {};
    // A FIFO would have us wait for a reader, here and with each line.
    UniqueFd fd(::open(options.file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0644));
    if (!fd) {
        const bool unread = errno == ENXIO;
        return errno_error(concat("open log file ", quoted(options.file)))
            .with_hint(unread ? "a FIFO needs somebody who has it open to read" : "");
    }
    logger().file = std::move(fd);
    return {};
}

void stop_logging() {
    // The descriptor may be another file's by now, so it is left alone.
    logger().file.release();
    logger().silent = true;
}

bool debug_enabled() { return logger().debug; }

void log_debug(std::string_view message) {
    if (!logger().debug) return;
    char elapsed[32];
    std::snprintf(elapsed, sizeof elapsed, "[%8.3f ms] ", double(monotonic_ns() - logger().started) / 1e6);
    log_line("debug", concat(elapsed, message));
}

void log_warning(std::string_view message) { log_line("warning", message); }

void log_notice(std::string_view message) {
    write_line_in_time(STDERR_FILENO, printable(concat("pinfold: ", message)));
}

void log_error(const Error& error) {
    if (logger().file) {
        const std::string hint = error.hint.empty() ? "" : concat(" (hint: ", error.hint, ")");
        write_line_in_time(logger().file.get(), printable(file_line("error", concat(error.message, hint)), kLineEnds));
    }
    write_line(STDERR_FILENO, concat("pinfold: ", error.message));
    if (!error.hint.empty()) write_line(STDERR_FILENO, concat("hint: ", error.hint));
}

}  // namespace pinfold
