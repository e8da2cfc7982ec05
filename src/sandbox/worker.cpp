// Work in a process of its own.
#include "sandbox/worker.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error_packet.hpp"
#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/payload_steps.hpp"

namespace pinfold {

namespace {

// First whether it was done, then the answer or the error, each with its size. Whole or it is no answer: what is cut
// short is shorter than that says.
struct Head {
    bool done;
    size_t size;
};

void send(int fd, const Result<std::string>& result) {
    const ErrorPacket error(result ? Error{} : result.error());
    const std::string_view answer = result ? std::string_view(*result) : error.bytes();
    const Head head{result.has_value(), answer.size()};
    // Where the reader is gone there is nobody to tell.
    for (const std::string_view part : {std::string_view(reinterpret_cast<const char*>(&head), sizeof head), answer})
        (void)write_all(fd, part, "the answer").has_value();
}

Result<std::string> unwrap(std::string text) {
    Head head{};
    const Error lost = plain_error("the process that supervised the sandbox was killed");
    if (text.size() < sizeof head) return lost;
    std::memcpy(&head, text.data(), sizeof head);
    text.erase(0, sizeof head);
    if (text.size() != head.size) return lost;
    if (head.done) return text;
    return unpack_error(text).value_or(lost);
}

// The caller's handlers are for its own affairs, and its mask may hold back what must end us.
[[noreturn]] void work_here(int answer, const std::function<Result<std::string>()>& work) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    reset_signals();
    for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_IGN);  // errors of write() are told
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
