// Hostile jobs that want more than they may have: processes, memory, disk, output, time.
#include <signal.h>
#include <sys/syscall.h>

#include "hostile.hpp"

using namespace pinfold::integration;

namespace {

bool contains(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

// As many as the limit, and the sandbox init. A machine that is busy may not get as far before the deadline.
void check_processes(const Attempt& attempt) {
    CHECK(limit_of(attempt.result, "max_processes")["value"] == 21);
    CHECK(attempt.used("peak_processes") <= 21);
}

// Who it is that holds memory: never an rlimit, which a job can walk around.
void check_holder(const Attempt& attempt) {
    const json by = limit_of(attempt.result, "memory_mb")["enforced_by"];
    CHECK((by == "cgroup1" || by == "cgroup2" || (attempt.as == As::user && by == "sampling")));
}

// A little more than the limit is what the kernel takes before it looks.
void check_memory(const Attempt& attempt) {
    const double limit = limit_of(attempt.result, "memory_mb")["value"];
    CHECK(attempt.used("peak_memory_bytes") <= limit * 1.1);
    if (attempt.as == As::root) CHECK(attempt.used("oom_kills") >= 1);
}

void check_output(const Attempt& attempt) {
    CHECK(attempt.result["truncated"] == true);
    CHECK(attempt.out().size() + attempt.err().size() == 100 << 10);
}

void check_deadline(const Attempt& attempt) {
    CHECK(attempt.used("wall_seconds") >= brief_seconds());
    CHECK(attempt.used("wall_seconds") < brief_seconds() + (pinfold::testing::slow_machine() ? 30 : 2));
}

// Half a terabyte of addresses of which one byte in each 2 MiB is read: nothing is resident but tables of pages.
const std::string kSparse =
    "my ($size, $step) = (1 << 39, 1 << 21);"
    "my $at = syscall(" +
    std::to_string(SYS_mmap) +
    ", 0, $size, 1, 0x4022, -1, 0);"
    "$at == -1 and die $!;"
    "for (my $i = 0; $i < $size; $i += $step) { unpack('P1', pack('Q', $at + $i)) }";

}  // namespace

TEST_CASE("hostile: jobs that multiply") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::string> few = {"--pids", "20", "--timeout", brief()};
    run_attacks({
        {.name = "a fork bomb in a shell",
         .options = few,
         .command = {"@fork-bomb.sh"},
         .end = kTimedOut,
         .check = check_processes,
         .beside = true},
        {.name = "a fork bomb of system calls",
         .options = few,
         .command = {"/probe", "bomb"},
         .end = kTimedOut,
         .check = check_processes},
        {.name = "as many processes as possible",
         .options = few,
         .command = {"/probe", "fork", "100000"},
         .check = [](const Attempt& attempt) { CHECK(attempt.answer(0)["children"] == 19); }},
        {.name = "as many threads as possible",
         .options = few,
         .command = {"/probe", "threads", "100000"},
         .check =
             [](const Attempt& attempt) {
                 CHECK(attempt.answer(0)["threads"] == 19);
                 CHECK(attempt.answer(0)["errno"] == "EAGAIN");
             }},
        {.name = "daemons that outlive their parents", .command = {"@daemon.sh"}, .end = {"exited", 4}},
    });
}

TEST_CASE("hostile: jobs that eat memory") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (pinfold::testing::sanitised()) SKIP_TEST("the sanitizers take more memory than the jobs have");
    // Right below its limit a job finds no room for its own program, and takes its time to notice.
    const std::vector<std::string> little = {"--memory", "48m", "--disk", "80m", "--timeout", "10m"};
    run_attacks({
        {.name = "private memory",
         .options = little,
         .command = {"/probe", "alloc", "400"},
         .end = kOutOfMemory,
         .end_of_user = kFine,
         .check =
             [](const Attempt& attempt) {
                 check_memory(attempt);
                 if (attempt.as == As::user) CHECK(attempt.answer(0)["errno"] == "ENOMEM");
             }},
        // Without a group no rlimit holds any of these: they are added up, and all is killed.
        {.name = "shared memory",
         .options = little,
         .command = {"/probe", "alloc", "1000", "shared"},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "many processes, each below the limit",
         .options = little,
         .command = {"/probe", "hoard", "12", "20"},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "many processes that have outlived their first threads",
         .options = little,
         .command = {"/probe", "hoard", "12", "20", "leaderless"},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "a thread without its first one",
         .options = little,
         .command = {"/probe", "leaderless", "1000"},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "shared memory that is filled and given back",
         .options = little,
         .command = {"/probe", "hide", "50", "20", "give-back"},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "shared memory that is filled by children",
         .options = little,
         .command = {"/probe", "hide", "50", "20", "children"},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "shared memory that is filled and unmapped but for a page",
         .options = little,
         .command = {"/probe", "hide", "50", "20", "unmap"},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "tables of pages",
         .options = little,
         .command = {"perl", "-e", kSparse},
         .end = kOutOfMemory,
         .check = check_holder},
        {.name = "memory that nobody has mapped",
         .options = little,
         .command = {"/probe", "syscall", std::to_string(SYS_memfd_create), "0", "0"},
         .check =
             [](const Attempt& attempt) {
                 CHECK(attempt.answer(0)["errno"] == (attempt.as == As::root ? "EFAULT" : "ENOSYS"));
             }},
        {.name = "and what is shared by many counts once",
         .options = little,
         .command = {"/probe", "share", "5", "24"},
         .check = [](const Attempt& attempt) { CHECK(attempt.answer(0)["ok"] == true); }},
        {.name = "a slow leak",
         .options = little,
         .command = {"perl", "-e", "push @leak, 'x' x 100000 while 1"},
         .end = kOutOfMemory,
         .end_of_user = End{"exited", 1},
         .check =
             [](const Attempt& attempt) {
                 if (attempt.as == As::user) CHECK(contains(attempt.err(), "Out of memory"));
             }},
        {.name = "files in memory",
         .options = little,
         .command = {"dd", "if=/dev/zero", "of=/workspace/x", "bs=1M", "status=none"},
         .end = kOutOfMemory,
         .end_of_user = End{"exited", 1}},
        {.name = "a child eats, the parent waits and ends well",
         .options = little,
         .command = {"sh", "-c", "perl -e '$x = q(x) x 500000000' 2> /dev/null; echo and on"},
         .check =
             [](const Attempt& attempt) {
                 CHECK(attempt.out() == "and on\n");
                 if (attempt.as == As::root) CHECK(attempt.used("oom_kills") == 1);
             }},
        {.name = "shared memory by its file system",
         .options = little,
         .command = {"dd", "if=/dev/zero", "of=/dev/shm/x", "bs=1M", "status=none"},
         .end = {"exited", 1},
         .check = [](const Attempt& attempt) { CHECK(contains(attempt.err(), "No space left on device")); }},
    });
}

TEST_CASE("hostile: jobs that fill the disk") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::string> small = {"--disk", "8m", "--memory", "128m"};
    const auto no_space = [](const Attempt& attempt) {
        CHECK(contains(attempt.err(), "No space left on device"));
        CHECK(limit_of(attempt.result, "disk_mb")["value"] == 8 << 20);
    };
    run_attacks({
        {.name = "one big file",
         .options = small,
         .command = {"dd", "if=/dev/zero", "of=/workspace/x", "bs=64k", "status=none"},
         .end = {"exited", 1},
         .check = no_space},
        {.name = "one big file in /tmp",
         .options = small,
         .command = {"dd", "if=/dev/zero", "of=/tmp/x", "bs=64k", "status=none"},
         .end = {"exited", 1},
         .check = no_space},
        {.name = "many empty files",
         .options = small,
         .command = {"perl", "-e", "open(my $file, '>', $count++) || die('after ', $count > 9000, $!) while 1"},
         .end = {"exited", 28},
         .check = [](const Attempt& attempt) { CHECK(contains(attempt.err(), "after No space left on device")); }},
        {.name = "a file with a hole as large as it can be",
         .options = small,
         .command = {"truncate", "-s", "1T", "x"},
         .end = {"signaled", 128 + SIGXFSZ}},
    });
}

TEST_CASE("hostile: jobs that never stop printing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::string> few = {"--output-limit", "100k", "--timeout", brief()};
    run_attacks({
        {.name = "lines", .options = few, .command = {"yes"}, .end = kTimedOut, .check = check_output},
        {.name = "lines of errors",
         .options = few,
         .command = {"sh", "-c", "yes >&2"},
         .end = kTimedOut,
         .check = check_output},
        {.name = "both, without a line's end",
         .options = few,
         .command = {"sh", "-c", "cat /dev/zero & cat /dev/zero >&2"},
         .end = kTimedOut,
         .check = check_output},
        {.name = "too much, and then an end",
         .options = few,
         .command = {"sh", "-c", "head -c 3000000 /dev/zero; exit 3"},
         .end = {"output_limit", 3},
         .check = check_output},
    });
}

TEST_CASE("hostile: jobs that never end") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::string> short_time = {"--timeout", brief()};
    run_attacks({
        {.name = "every signal ignored",
         .options = short_time,
         .command = {"perl", "-e", "$SIG{$_} = 'IGNORE' for keys %SIG; $| = 1; print 'on'; 1 while 1"},
         .end = kTimedOut,
         .check =
             [](const Attempt& attempt) {
                 check_deadline(attempt);
                 CHECK(attempt.out() == "on");
             }},
        {.name = "stopped by itself",
         .options = short_time,
         .command = {"sh", "-c", "kill -STOP $$"},
         .end = kTimedOut,
         .check = check_deadline},
        {.name = "streams closed",
         .options = short_time,
         .command = {"sh", "-c", "exec <&- >&- 2>&-; while :; do :; done"},
         .end = kTimedOut,
         .check = check_deadline},
        {.name = "waits for a child that is stopped",
         .options = short_time,
         .command = {"sh", "-c", "(kill -STOP $(sh -c 'echo $PPID')) & wait; sleep 1000"},
         .end = kTimedOut,
         .check = check_deadline},
    });
}

TEST_CASE("hostile: jobs that burn processor time") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    run_attacks({
        {.name = "more than one processor's worth",
         .options = {"--cpus", "0.2", "--allow-unenforced", "cpu_cores", "--timeout", brief()},
         .command = {"sh", "-c", "(while :; do :; done) & while :; do :; done"},
         .end = kTimedOut,
         .check =
             [](const Attempt& attempt) {
                 const json by = limit_of(attempt.result, "cpu_cores")["enforced_by"];
                 CHECK((by == nullptr) == (attempt.as == As::user));  // who has none: it is told
                 // A slice that was begun is given whole.
                 const double slack = pinfold::testing::slow_machine() ? 0.5 : 0.1;
                 if (by != nullptr) CHECK(attempt.used("cpu_seconds") < 0.2 * attempt.used("wall_seconds") + slack);
             }},
        {.name = "alone",
         .options = {"--cpu-timeout", "200ms"},
         .command = {"sh", "-c", "while :; do :; done"},
         .end = kTimedOut,
         .check =
             [](const Attempt& attempt) {
                 CHECK(attempt.used("cpu_seconds") > 0.19);
                 CHECK(attempt.used("cpu_seconds") < (pinfold::testing::slow_machine() ? 2.5 : 0.5));
             }},
        {.name = "by many processes",
         .options = {"--cpu-timeout", "200ms"},
         .command = {"sh", "-c", "for i in 1 2; do (while :; do :; done) & done; wait; exit 6"},
         .end = kTimedOut},
        // None of them has used much, and whoever ignores their end does not have it added to its own.
        {.name = "by many processes, one after the other",
         .options = {"--cpu-timeout", "500ms"},
         .command = {"sh", "-c",
                     "trap '' CHLD; while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done) & wait; done"},
         .end = kTimedOut},
    });
}
