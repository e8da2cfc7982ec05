// The sub-commands: each does one thing and answers with one JSON object on one line,
// {"ok":true,...} or {"ok":false,"errno":"EPERM"}.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "json.hpp"
#include "text.hpp"

namespace probe {

using Arguments = std::vector<std::string>;

Object success();
Object failure();              // reads errno
Object success_if(bool done);  // else failure()

// report.cpp
Object report(const Arguments& arguments);

// do_files.cpp
Object read_command(const Arguments& arguments);    // PATH
Object write_command(const Arguments& arguments);   // PATH TEXT: an existing file
Object create_command(const Arguments& arguments);  // PATH TEXT: a new file
Object mkdir_command(const Arguments& arguments);   // PATH
Object stat_command(const Arguments& arguments);    // PATH, the link itself
Object open_command(const Arguments& arguments);    // PATH ro|wo|rw
Object label_command(const Arguments& arguments);   // PATH: SELinux's, of the file
Object list_command(const Arguments& arguments);    // PATH
Object mknod_command(const Arguments& arguments);   // PATH c|b|p MAJOR MINOR
Object statfs_command(const Arguments& arguments);  // PATH
Object mount_command(const Arguments& arguments);   // SOURCE TARGET TYPE
Object exec_command(const Arguments& arguments);    // PATH: in a child; its exit code

// do_process.cpp
Object syscall_command(const Arguments& arguments);      // NUMBER [ARGUMENTS]: as numbers
Object exit_command(const Arguments& arguments);         // CODE
Object signal_command(const Arguments& arguments);       // NUMBER: kills itself
Object wait_signal_command(const Arguments& arguments);  // READY, each signal as it comes; ends with TERM
Object alloc_command(const Arguments& arguments);        // MEGABYTES [shared], touched
Object fork_command(const Arguments& arguments);         // COUNT: how many children could live at once
Object threads_command(const Arguments& arguments);      // COUNT: how many could be started
Object bomb_command(const Arguments& arguments);         // READY, then forks for ever, and so do all children
Object orphan_command(const Arguments& arguments);       // leaves a sleeping child in a session of its own
Object flee_command(
    const Arguments& arguments);  // namespaces|write|clone3|threads|relay GROUP: the same, away from all that marks it
Object hold_thread_command(const Arguments& arguments);  // READY when a child, which never waits, traces a thread
// In a thread, while the first one ends.
[[noreturn]] void outlive_first_thread(const std::function<void()>& work);
Object burn_command(const Arguments& arguments);   // MILLISECONDS of processor time; wall time used
Object count_command(const Arguments& arguments);  // PATH: an ever greater number, for ever
Object sleep_forever_command(const Arguments& arguments);
Object print_command(const Arguments& arguments);  // TEXT to standard error

// do_attacks.cpp: READY, then again and again at each other process; what was reached, when TERM comes
Object pry_command(const Arguments& arguments);        // descriptors, memory, tracing of those that run another program
Object overwrite_command(const Arguments& arguments);  // the files of other programs
Object trace_others_command(const Arguments& arguments);
Object trace_slowly_command(const Arguments& arguments);
Object hold_channels_command(const Arguments& arguments);
Object stop_others_command(const Arguments& arguments);  // for ever
Object speak_for_others_command(const Arguments& arguments);
Object reach_first_command(const Arguments& arguments);  // the same, but once, at the first process
Object reach_command(const Arguments& arguments);        // SECRET WORD ROOT NAMESPACES: of the host; and more rights

// do_limits.cpp
Object hugepages_command(const Arguments& arguments);  // COUNT [noreserve]: pages of 2 MB, touched
Object disk_command(const Arguments& arguments);       // PATH read|write BLOCK COUNT: past the cache; wall time used
Object rdma_command(const Arguments& arguments);       // PATH: one handle, and one object of it

Object hoard_command(
    const Arguments& arguments);  // COUNT MEGABYTES [leaderless]: children that each have so much; their end is ours
Object share_command(const Arguments& arguments);  // COUNT MEGABYTES: the same, of which all have read the same
Object hide_command(
    const Arguments& arguments);  // PARTS MEGABYTES give-back|children|unmap: shared memory resident in no process
Object leaderless_command(const Arguments& arguments);  // MEGABYTES shared, by a thread that has outlived the first
Object fill_keys_command(const Arguments& arguments);   // READY when the user can have no more; holds them for ever

// do_streams.cpp
Object connect_loopback_command(const Arguments& arguments);
Object winsize_command(const Arguments& arguments);  // READY, then the size at each SIGWINCH until end of input
Object cat_command(const Arguments& arguments);
Object read_fd_command(const Arguments& arguments);    // FD
Object store_fds_command(const Arguments& arguments);  // FILE

// escape.cpp
Object escape_command(const Arguments& arguments);  // [GROUP]: a line per attempt to get out

}  // namespace probe
