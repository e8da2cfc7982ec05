// Processes: started, waited for, held by a descriptor, found again. This process: its standard streams, its file.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// For execve() and its kin: valid as long as the texts are.
std::vector<char*> pointers(const std::vector<std::string>& texts);

// A program that is looked for in PATH, with our environment. Its output and errors go to `output`; -1: to ours.
Result<pid_t> spawn(const std::vector<std::string>& words, int output = -1);

// Empty, with errno, if there is no such process.
UniqueFd open_pidfd(pid_t pid);

// Waits for a child of ours, and gives its exit code. 0 where the kernel has reaped it, as it does for whoever ignores
// SIGCHLD.
int reap(pid_t pid);

struct ChildEnd {
    siginfo_t how;
    rusage usage;  // of the child and of those that it had waited for
};

// The same for a child that is held, and that somebody else must not have reaped.
Result<ChildEnd> reap_held(int pidfd);

// The status of an exit, 128 + n for death by signal n.
int exit_code_of(const siginfo_t& end);

// /dev/null on each of them that the caller has closed. Otherwise the next file that is opened becomes a standard
// stream: what is printed lands in it, and the payload inherits it.
Result<void> fill_standard_streams();
// Whether that was so of standard output: an answer that is printed there reaches nobody.
bool standard_output_was_closed();

// The same descriptor above them. For what may have been opened while one of them was closed.
Result<UniqueFd> above_standard_streams(UniqueFd fd);

// Where this program's file lies, for what is installed beside it.
// Of a read-only clone or a copy of the file, which has no place of its own: its argv[0], which whoever started it has
// to set. Not necessarily absolute.
std::string own_path();

// A child process that dies and is reaped with its owner, unless the owner lets it go.
class ChildGuard {
public:
    explicit ChildGuard(pid_t pid);
    ChildGuard(ChildGuard&& other) noexcept;
    ChildGuard(const ChildGuard&) = delete;
    ChildGuard& operator=(const ChildGuard&) = delete;
    ChildGuard& operator=(ChildGuard&&) = delete;
    ~ChildGuard();

    pid_t pid() const noexcept { return pid_; }
    // From now on the child is somebody else's to end and to reap.
    void release() noexcept { armed_ = false; }

private:
    pid_t pid_;
    pid_t owner_;  // a copy of this object in a forked child must not kill its sibling
    bool armed_ = true;
};

// A process that outlives the one that started it, found again by pid and start time: a pid alone may be reused.

// In clock ticks since boot; 0 if there is no such process. One that only waits to be reaped still has it.
Result<uint64_t> process_start_time(pid_t pid);

// Whether the very process that was started at that time lives, for who only tells of it.
Result<bool> is_alive(pid_t pid, uint64_t started);
// Holds it; empty if it has ended.
Result<UniqueFd> open_process(pid_t pid, uint64_t started);

// Whether all of its threads have. Nothing else tells that: the state of a process in /proc is that of its first
// thread, which may end while others live on.
bool has_ended(int pidfd);

// In /proc: "/proc/12/task/13". None of a process that is gone.
std::vector<std::string> threads_of(pid_t pid);

// What a process has is told by each of its threads that lives. `ask` is given the directories of the first one
// ("/proc/12"), of the others, and of those that have come meanwhile, until it has an answer and says so. False: there
// was none, as of a process that has ended.
bool ask_threads(pid_t pid, const std::function<bool(const std::string& thread)>& ask);

// The namespaces and the root of a process are joined by its first thread, which has to live for that.
Result<void> require_first_thread(pid_t pid);

// As this process's /proc has it; an error if it has ended, or is in no namespace below ours.
Result<pid_t> pid_of(int pidfd);

// True if it is there to receive it.
Result<bool> send_signal(int pidfd, int signal);

// After SIGKILL. One in uninterruptible sleep can outlive that for a while, but is not waited for for ever.
Result<void> await_end(int pidfd, std::chrono::seconds patience = std::chrono::seconds(10));

// An error on its way from one process of pinfold to another.
// Both ends are the same program, so this is a plain struct. Its size is fixed: who sends it may be under a filter that
// forbids to allocate.
struct ErrorPacket {
    static constexpr size_t kMaxText = 4096;  // of a message and of a hint: whole sentences

    int32_t code = 0;
    uint32_t message_length = 0;
    uint32_t hint_length = 0;
    char text[2 * kMaxText];  // left as it is: only what is used is sent

    ErrorPacket() {}  // NOLINT(modernize-use-equals-default): that would clear the text
    explicit ErrorPacket(const Error& error) { hold(error); }

    void hold(const Error& error) noexcept;
    size_t size() const { return offsetof(ErrorPacket, text) + message_length + hint_length; }
    std::string_view bytes() const { return {reinterpret_cast<const char*>(this), size()}; }
};

// Nothing: it was cut short.
std::optional<Error> unpack_error(std::string_view bytes);

}  // namespace pinfold
