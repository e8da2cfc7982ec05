// Before a verb begins.
#include "cli/begin.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strings.hpp"

namespace pinfold {

Rewording callers_words(const Gate& gate) {
    return [&gate](std::string text) { return gate.in_callers_words(std::move(text)); };
}

Result<AuditTrail> open_audit(const CommandLine& line) {
    return open_trail(line.gate->policies(), line.global.audit, callers_words(*line.gate));
}

ReceiptHandler require_and_log(const AuditTrail& trail, const std::string& id) {
    return [&trail, id](const Receipt& receipt) {
        if (trail.is_on()) append_or_warn(trail, receipt_event(id, receipt));
        return require(receipt);
    };
}

namespace {

Result<void> check_terminal(const ChildOptions& options, const Process& process) {
    const bool socket = !options.console_socket.empty();
    if (process.terminal && options.detach && !socket) {
        return plain_error("a terminal in the background needs --console-socket: nobody would hold the terminal")
            .with_hint("give --console-socket, or leave out process.terminal (exec: --tty)");
    }
    if (socket && !process.terminal) {
        return plain_error("--console-socket needs a terminal: set process.terminal to true (exec: --tty)");
    }
    return {};
}

// What the caller passed on survived our own execve; what we opened since would not. Without this check one of ours
// could stay open in the range that is left to the payload.
Result<void> check_preserved(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        const int fd = static_cast<int>(3 + i);
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) continue;
        return plain_error(concat("--preserve-fds ", count, ": descriptor ", fd, " is not open"))
            .with_hint(concat("pass on all of 3 to ", 2 + uint64_t{count}, ", or name a smaller number"));
    }
    return {};
}

}  // namespace

Result<void> check_child_options(const ChildOptions& options, const Process& process) {
    TRY(check_terminal(options, process));
    return check_preserved(options.preserve_fds);
}

Result<void> check_input(const ChildOptions& options, const Process& process) {
    if (!process.terminal || !options.console_socket.empty() || ::isatty(STDIN_FILENO) != 0) return {};
    struct stat info {};
    if (::fstat(STDIN_FILENO, &info) != 0 || !S_ISCHR(info.st_mode)) return {};
    return plain_error("a terminal for the program, and nobody to type: standard input is a device such as /dev/null")
        .with_hint("call pinfold at a terminal, give --console-socket, or leave out process.terminal (exec: --tty)");
}

ChildOptions with_cache(ChildOptions options, const GlobalOptions& global) {
    options.seccomp_cache = concat(global.root, "/.seccomp");
    return options;
}

}  // namespace pinfold
