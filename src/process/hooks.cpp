// Running hooks.
#include "process/hooks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/capabilities.hpp"
#include "pinfold/unique_fd.hpp"
#include "process/payload_steps.hpp"
#include "process/supervise.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxOutput = 1024;  // of what a hook has printed: enough for its last words

// A file, not a pipe: a hook that does not read it holds nobody up.
Result<UniqueFd> state_file(const std::string& state) {
    UniqueFd file(::memfd_create("state", MFD_CLOEXEC));
    if (!file) return errno_error("memfd_create");
    TRY(write_all(file.get(), state, "the state"));
    if (::lseek(file.get(), 0, SEEK_SET) != 0) return errno_error("write the state");
    return file;
}

// Not even by executing a program: root gets all that is in the bounding set.
bool give_up_tracing() {
    const uint64_t tracing = capability_bit("CAP_SYS_PTRACE").value_or(0);
    return drop_bounding_set(~tracing) && drop_capabilities(tracing);
}

// In a session of its own, so that whatever it starts can be ended with it. Nothing of ours stays open in it.
[[noreturn]] void become_hook(const Hook& hook, int input, int output, bool forbids_tracing) {
    ::setsid();
    reset_signals();
    const bool ready = (!forbids_tracing || give_up_tracing()) && ::dup2(input, STDIN_FILENO) >= 0 &&
                       ::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(output, STDERR_FILENO) >= 0 &&
                       ::close_range(3, UINT_MAX, 0) == 0;
    if (ready) {
        const Error error = execute(hook.path, hook.args.empty() ? std::vector{hook.path} : hook.args, hook.env);
        // Not in the words of the error: they stand for a payload that is missing.
        const std::string words = errno_words(error.code);
        [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, words.data(), words.size());
    }
    ::_exit(127);
}

class RunningHook {
public:
    RunningHook(ChildGuard child, UniqueFd pidfd, UniqueFd output)
        : child_(std::move(child)), pidfd_(std::move(pidfd)), output_(std::move(output)) {}

    // Until its end, or until the time is over or a signal comes; then it is killed with all that it has started.
    Result<void> await(const Hook& hook, int signal_fd);

private:
    Result<void> poll_once(int64_t deadline, int signal_fd);
    void read_output();
    Result<void> check_end();

    ChildGuard child_;
    UniqueFd pidfd_;
    UniqueFd output_;
    std::string text_;
    bool ended_ = false;
};

void RunningHook::read_output() {
    char buffer[512];
    ssize_t got = 0;
    while ((got = ::read(output_.get(), buffer, sizeof buffer)) > 0) {
        text_.append(buffer, size_t(got));
        if (text_.size() > kMaxOutput) text_.erase(0, text_.size() - kMaxOutput);
    }
    if (got == 0) output_.reset();
}

Result<void> RunningHook::poll_once(int64_t deadline, int signal_fd) {
    const int64_t left = deadline == INT64_MAX ? -1 : std::max<int64_t>(0, (deadline - monotonic_ns()) / 1'000'000);
    pollfd slots[] = {{pidfd_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}, {signal_fd, POLLIN, 0}};
    const int ready = ::poll(slots, 3, static_cast<int>(std::min<int64_t>(left, INT_MAX)));
    if (ready < 0 && errno != EINTR) return errno_error("poll");
    if (ready == 0) return plain_error("took longer than its timeout");
    if (slots[1].revents != 0) read_output();
    if (slots[2].revents != 0) TRY(refuse_to_go_on(signal_fd));
    ended_ = slots[0].revents != 0;
    return {};
}

Result<void> RunningHook::check_end() {
    read_output();  // what it has left in the pipe
    const ChildEnd end = TRY(reap_held(pidfd_.get()));
    child_.release();
    const int code = exit_code_of(end.how);
    if (code == 0) return {};
    while (text_.ends_with('\n')) text_.pop_back();
    return plain_error(concat("ended with exit code ", code, text_.empty() ? "" : ": ", text_));
}

Result<void> RunningHook::await(const Hook& hook, int signal_fd) {
    const int64_t deadline = hook.timeout ? monotonic_ns() + *hook.timeout * 1'000'000'000 : INT64_MAX;
    while (!ended_) {
        Result<void> polled = poll_once(deadline, signal_fd);
        if (polled) continue;
        ::kill(-child_.pid(), SIGKILL);
        return polled;
    }
    return check_end();
}

Result<void> run_hook(const Hook& hook, const std::string& state, int signal_fd, bool forbids_tracing = false) {
    const UniqueFd input = TRY(state_file(state));
    Pipe output = TRY(make_pipe(" for the output"));
    if (::fcntl(output.from.get(), F_SETFL, O_NONBLOCK) != 0) return errno_error("fcntl");
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error("fork");
    if (pid == 0) become_hook(hook, input.get(), output.to.get(), forbids_tracing);
    ChildGuard child(pid);
    output.to.reset();
    UniqueFd pidfd = open_pidfd(pid);
    if (!pidfd) return errno_error("pidfd_open");
    return RunningHook(std::move(child), std::move(pidfd), std::move(output.from)).await(hook, signal_fd);
}

std::string hook_name(std::string_view kind, size_t index, const Hook& hook) {
    return concat("hooks.", kind, "[", index, "] ", hook.path);
}

}  // namespace

std::string hook_state(const ContainerRecord& record, Status status, pid_t pid) {
    return state_to_json({.record = record, .status = status, .pid = pid});
}

Result<void> run_hooks(std::string_view kind, const std::vector<Hook>& hooks, const std::string& state, int signal_fd,
                       bool forbids_tracing) {
    for (size_t i = 0; i < hooks.size(); ++i) {
        log_debug(hook_name(kind, i, hooks[i]));
        TRY_IN(hook_name(kind, i, hooks[i]), run_hook(hooks[i], state, signal_fd, forbids_tracing));
    }
    return {};
}

void run_poststop_hooks(const std::vector<Hook>& hooks, const std::string& state, int signal_fd) {
    for (size_t i = 0; i < hooks.size(); ++i) {
        const Result<void> ran = run_hook(hooks[i], state, signal_fd);
        if (!ran) log_warning(concat(hook_name("poststop", i, hooks[i]), ": ", ran.error().message));
    }
}

}  // namespace pinfold
