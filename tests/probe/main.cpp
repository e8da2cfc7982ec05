// The payload of the integration tests: a static program that reports what it sees from inside a container
// and tries things there. `probe COMMAND ARGUMENTS`; several of them in one start, separated by the argument ";".
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "commands.hpp"

namespace probe {

Object success() { return Object().add("ok", true); }
Object failure() { return Object().add("ok", false).add("errno", strerrorname_np(errno)); }
Object success_if(bool done) { return done ? success() : failure(); }

namespace {

struct Command {
    const char* name;
    size_t least_arguments;
    Object (*run)(const Arguments&);
};

constexpr std::array kCommands = {
    Command{"report", 0, report},
    // files
    Command{"read", 1, read_command},
    Command{"write", 2, write_command},
    Command{"create", 2, create_command},
    Command{"mkdir", 1, mkdir_command},
    Command{"stat", 1, stat_command},
    Command{"open", 2, open_command},
    Command{"list", 1, list_command},
    Command{"label", 1, label_command},
    Command{"mknod", 4, mknod_command},
    Command{"statfs", 1, statfs_command},
    Command{"mount", 3, mount_command},
    Command{"exec", 1, exec_command},
    // processes
    Command{"syscall", 1, syscall_command},
    Command{"exit", 1, exit_command},
    Command{"signal", 1, signal_command},
    Command{"wait-signal", 0, wait_signal_command},
    Command{"hoard", 2, hoard_command},
    Command{"share", 2, share_command},
    Command{"hide", 3, hide_command},
    Command{"leaderless", 1, leaderless_command},
    Command{"fill-keys", 0, fill_keys_command},
    Command{"alloc", 1, alloc_command},
    Command{"fork", 1, fork_command},
    Command{"threads", 1, threads_command},
    Command{"bomb", 0, bomb_command},
    Command{"orphan", 0, orphan_command},
    Command{"flee", 2, flee_command},
    Command{"hold-thread", 0, hold_thread_command},
    Command{"burn", 1, burn_command},
    Command{"count", 1, count_command},
    Command{"sleep-forever", 0, sleep_forever_command},
    Command{"print", 1, print_command},
    // attacks
    Command{"pry", 0, pry_command},
    Command{"overwrite", 0, overwrite_command},
    Command{"reach", 4, reach_command},
    Command{"reach-first", 4, reach_first_command},
    Command{"stop-others", 0, stop_others_command},
    Command{"trace-others", 0, trace_others_command},
    Command{"trace-slowly", 0, trace_slowly_command},
    Command{"hold-channels", 0, hold_channels_command},
    Command{"speak-for-others", 1, speak_for_others_command},
    // limits
    Command{"hugepages", 1, hugepages_command},
    Command{"disk", 4, disk_command},
    Command{"rdma", 1, rdma_command},
    // streams
    Command{"connect-loopback", 0, connect_loopback_command},
    Command{"winsize", 0, winsize_command},
    Command{"cat", 0, cat_command},
    Command{"read-fd", 1, read_fd_command},
    Command{"store-fds", 1, store_fds_command},
    // attacks
    Command{"escape", 0, escape_command},
};

int run_command(const Arguments& command) {
    const auto found = std::find_if(kCommands.begin(), kCommands.end(),
                                    [&](const Command& known) { return command.front() == known.name; });
    if (found == kCommands.end() || command.size() - 1 < found->least_arguments) {
        std::fprintf(stderr, "probe: no such command or too few arguments: %s\n", command.front().c_str());
        return 2;
    }
    const Object answer = found->run({command.begin() + 1, command.end()});
    std::printf("%s\n", answer.text().c_str());
    return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace

}  // namespace probe

int main(int argc, char** argv) {
    const probe::Arguments arguments(argv + 1, argv + argc);
    for (auto begin = arguments.begin(); begin != arguments.end();) {
        const auto end = std::find(begin, arguments.end(), ";");
        if (begin != end) {
            if (const int status = probe::run_command({begin, end}); status != 0) return status;
        }
        begin = end == arguments.end() ? end : end + 1;
    }
    return 0;
}
