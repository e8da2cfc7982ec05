// Work in a process of its own.
#include "sandbox/worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/standard_streams.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/payload_steps.hpp"

namespace pinfold {

namespace {

// "CODE MESSAGE-LENGTH HINT-LENGTH\n", the two texts, then the answer. Whole or it is no answer: what is cut short is
// shorter than its head says.
void send(int fd, const Result<std::string>& result) {
    const Error error = result ? Error{} : result.error();
    const std::string none;
    const std::string& answer = result ? *result : none;
    const std::string head = concat(result ? "ok " : "failed ", error.code, ' ', error.message.size(), ' ',
                                    error.hint.size(), ' ', answer.size(), '\n', error.message, error.hint);
    // Where the reader is gone there is nobody to tell.
    for (const std::string_view part : {std::string_view(head), std::string_view(answer)})
        (void)write_all(fd, part, "the answer").has_value();
}

Result<std::string> unwrap(std::string text) {
    const Error lost = plain_error("the process that supervised the sandbox was killed");
    const size_t end = text.find('\n');
    if (end == text.npos) return lost;
    const std::vector<std::string_view> head = split(std::string_view(text).substr(0, end), ' ');
    if (head.size() != 5) return lost;
    const auto code = parse_number<int>(head[1]);
    const auto message = parse_number<size_t>(head[2]), hint = parse_number<size_t>(head[3]);
    const auto answer = parse_number<size_t>(head[4]);
    const std::string_view rest = std::string_view(text).substr(end + 1);
    if (!code || !message || !hint || !answer || rest.size() != *message + *hint + *answer) return lost;
    if (head[0] == "ok") return std::move(text.erase(0, end + 1));  // it may be long
    return Error{*code, std::string(rest.substr(0, *message)), std::string(rest.substr(*message, *hint))};
}

// The caller's handlers are for its own affairs, and its mask may hold back what must end us.
[[noreturn]] void work_here(int answer, const std::function<Result<std::string>()>& work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    reset_signals();
    ::signal(SIGPIPE, SIG_IGN);
    const Result<void> filled = fill_standard_streams();
    send(answer, filled ? work() : filled.error());
    ::_exit(0);
}

}  // namespace

Result<std::string> in_worker(const std::function<Result<std::string>()>& work) {
    Pipe pipe = TRY(make_pipe(" to the supervisor"));
    // A caller may have closed its standard streams: their numbers are left free, for the worker to fill.
    const Result<UniqueFd> from = above_standard_streams(std::move(pipe.from));
    Result<UniqueFd> to = above_standard_streams(std::move(pipe.to));
    if (!from || !to) return from ? to.error() : from.error();
    const pid_t pid = ::fork();  // glibc's: its locks are whole in the child, whatever other threads were doing
    if (pid < 0) return errno_error("start the supervisor");
    if (pid == 0) work_here(to->get(), work);
    to->reset();
    Result<std::string> text = read_all(from->get(), "the supervisor's answer");
    reap(pid);
    if (!text) return text;
    return unwrap(std::move(*text));
}

}  // namespace pinfold
