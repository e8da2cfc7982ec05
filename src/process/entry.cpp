// The way into a pid namespace that others live in.
#include "process/entry.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "kernel/syscalls.hpp"

namespace pinfold {

// The 48th and 51st of the words in stat: where the arguments begin and where the environment ends, which follows them.
OwnWords find_own_words() {
    const Result<std::string> stat = read_file("/proc/self/stat");
    if (!stat) return {};
    const std::vector<std::string_view> words = split(std::string_view(*stat).substr(stat->rfind(')') + 1), ' ');
    constexpr size_t kArguments = 48 - 2, kEnvironmentEnd = 51 - 2;
    if (words.size() <= kEnvironmentEnd) return {};
    return {parse_number<uintptr_t>(words[kArguments]).value_or(0),
            parse_number<uintptr_t>(words[kEnvironmentEnd]).value_or(0)};
}

void wipe(const OwnWords& words) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel tells addresses as numbers
    std::memset(reinterpret_cast<void*>(words.begin), 0, words.end - words.begin);
}

Result<void> depend_on_parent(const Channel& channel) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("set the parent-death signal");
    pollfd parent{channel.fd(), 0, 0};
    if (::poll(&parent, 1, 0) > 0) return plain_error("the parent is gone");
    return {};
}

Result<void> close_all_but(std::span<const int> kept, unsigned first) {
    stop_logging();
    std::vector<unsigned> numbers;
    for (const int fd : kept) {
        if (fd >= 0 && unsigned(fd) >= first) numbers.push_back(unsigned(fd));
    }
    std::ranges::sort(numbers);
    for (const unsigned number : numbers) {
        if (number > first && ::close_range(first, number - 1, 0) != 0) return errno_error("close_range");
        first = number + 1;
    }
    if (::close_range(first, UINT_MAX, 0) != 0) return errno_error("close_range");
    return {};
}

Result<void> clone_as_sibling(uint64_t flags, const Channel& channel, const std::function<void()>& as_child) {
    int pidfd = -1;
    clone_args arguments{};
    arguments.flags = flags | CLONE_PARENT | CLONE_PIDFD;
    arguments.pidfd = reinterpret_cast<uintptr_t>(&pidfd);
    // With CLONE_PARENT the exit signal is the cloner's own.
    const pid_t pid = sys_clone3(arguments);
    if (pid == 0) {
        as_child();
        ::_exit(1);
    }
    if (pid < 0) {
        Error error = errno_error("clone");
        if (error.code == EAGAIN)
            error.hint =
                "the limit of processes is reached (pids.max of a cgroup, or RLIMIT_NPROC): to come in takes "
                "two for a moment";
        if (error.code == ENOMEM && flags == 0)
            error.hint = "has the first process of the joined pid namespace ended? None can be started in it then";
        return error;
    }
    Result<void> sent = channel.send_born(pid, pidfd);
    if (!sent) ::kill(pid, SIGKILL);
    return sent;
}

Result<Child> expect_born(const Channel& channel, int cloner_pidfd, int signal_fd) {
    pollfd slots[] = {{cloner_pidfd, POLLIN, 0}, {signal_fd, POLLIN, 0}};
    bool spoken = false;
    do {
        spoken = TRY(channel.await(slots));
        if (!spoken && slots[1].revents != 0) TRY(refuse_to_go_on(signal_fd));
    } while (!spoken && slots[0].revents == 0);
    // Whoever has ended may have spoken before.
    pollfd said{channel.fd(), POLLIN, 0};
    if (!spoken && ::poll(&said, 1, 0) == 0)
        return plain_error("the container's process was killed while it was set up")
            .with_hint("was the memory limit too low?");
    Packet born = TRY(expect(channel, Message::born));
    return Child{ChildGuard(born.pid), std::move(born.fd)};
}

}  // namespace pinfold
