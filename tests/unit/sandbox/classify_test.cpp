// What the end of a job amounts to: which of several reasons is the one that is told, and where the figures come from.
#include "sandbox/classify.hpp"

#include <signal.h>

#include <cerrno>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

constexpr auto kSecond = std::chrono::seconds(1);

PayloadEnd exited(int code) { return {.signaled = false, .status = code, .cpu_usec = 0, .most_memory = 0}; }
PayloadEnd killed_by(int signal) { return {.signaled = true, .status = signal, .cpu_usec = 0, .most_memory = 0}; }

SandboxResult classified(const JobEnd& end, const JobCounts& counts = {}) {
    SandboxResult result;
    classify(end, counts, result);
    return result;
}

SandboxStatus status_of(const JobEnd& end, const JobCounts& counts = {}) { return classified(end, counts).status; }

}  // namespace

TEST_CASE("classify: the payload's own end is told as it was") {
    const SandboxResult three = classified({.payload = exited(3)});
    CHECK(three.status == SandboxStatus::exited);
    CHECK(three.exit_code == 3);
    CHECK_FALSE(three.signal);
    CHECK(exit_code_of(three) == 3);

    const SandboxResult killed = classified({.payload = killed_by(SIGSEGV)});
    CHECK(killed.status == SandboxStatus::signaled);
    CHECK_FALSE(killed.exit_code);
    CHECK(killed.signal == SIGSEGV);
    CHECK(exit_code_of(killed) == 128 + SIGSEGV);

    // Of one that went with its init nobody knows more than that it was killed.
    const SandboxResult gone = classified({.payload = {}});
    CHECK(gone.status == SandboxStatus::signaled);
    CHECK(gone.signal == SIGKILL);
    CHECK_FALSE(gone.exit_code);
}

TEST_CASE("classify: what stopped it is named, and said in a line") {
    SandboxResult result;
    result.limits = {{"memory_mb", "64", "cgroup2", ""},
                     {"max_processes", "20", "cgroup2", ""},
                     {"disk_mb", "30", "tmpfs", ""},
                     {"timeout_seconds", "2", "timer", ""},
                     {"cpu_timeout_seconds", "1.5", "timer", ""}};
    JobEnd end{.payload = {}, .timed_out = true, .wall = std::chrono::milliseconds(2040)};
    JobCounts counts{.usage = {.cpu_usec = 1'500'000, .peak_memory = 64 << 20, .refused_forks = 31},
                     .oom_kills = 0,
                     .disk_full = true};
    using Lines = std::vector<std::string>;
    const Lines met = {"process limit 20 was hit 31 times", "disk 30 MB was full"};
    const auto check = [&](const char* limit, const char* line) {
        classify(end, counts, result);
        CHECK(result.stopped_by == limit);
        CHECK(explain(result) == Lines{line, met[0], met[1]});
    };
    check("timeout_seconds", "killed after 2.0 s: --timeout 2s");
    CHECK(result.limits[3].hit == 1);
    CHECK(result.limits[4].hit == 0);
    end.cpu_timed_out = true;
    check("cpu_timeout_seconds", "killed after 1.5 s of processor time: --cpu-timeout 1.5s");
    CHECK(result.limits[3].hit == 0);
    CHECK(result.limits[4].hit == 1);
    end.timed_out = end.cpu_timed_out = false;
    counts.oom_kills = 1;
    check("memory_mb", "out of memory: 64 MB (peak 64 MB)");
    CHECK(result.limits[0].hit == 1);
    end.payload = exited(0);
    counts.usage.refused_forks = 1;
    counts.disk_full = false;
    SandboxResult well = result;
    well.signal.reset();
    classify(end, counts, well);
    CHECK(well.stopped_by.empty());
    CHECK(explain(well) == Lines{"memory limit 64 MB was hit once (peak 64 MB)", "process limit 20 was hit once"});
    CHECK(explain(classified({.payload = exited(3)})).empty());
}

TEST_CASE("classify: a program that is not there is told from one that cannot be executed") {
    CHECK(exit_code_of(failed_result({ENOENT, "executable: \"x\": executable file not found in $PATH", {}})) == 127);
    CHECK(exit_code_of(failed_result({ENOENT, "executable: \"/x\": no such file or directory", {}})) == 127);
    CHECK(exit_code_of(failed_result({EACCES, "executable: \"/x\": permission denied", {}})) == 126);
    CHECK(exit_code_of(failed_result({ENOENT, "rootfs: /x: no such file or directory", {}})) == 125);
}

TEST_CASE("classify: a receipt that holds is its digest, unless it is asked for") {
    SandboxResult result;
    result.receipt = {{"user", "1", "1", true}};
    SandboxResult asked = result, broken = result;
    keep_receipt(false, result);
    CHECK(result.receipt.empty());
    CHECK(result.receipt_sha256.size() == 64);
    keep_receipt(true, asked);
    CHECK(asked.receipt.size() == 1);
    CHECK(asked.receipt_sha256 == result.receipt_sha256);
    broken.receipt[0].holds = false;
    keep_receipt(false, broken);
    CHECK(broken.receipt.size() == 1);
    CHECK(broken.receipt_sha256 != result.receipt_sha256);
}

TEST_CASE("classify: of several reasons, time comes before memory, and memory before output") {
    JobEnd end{.payload = killed_by(SIGKILL), .timed_out = true, .out_of_memory = true, .over_limit = true};
    CHECK(status_of(end) == SandboxStatus::timed_out);
    CHECK(exit_code_of(classified(end)) == 124);
    end.timed_out = false;
    CHECK(status_of(end) == SandboxStatus::oom_killed);
    CHECK(exit_code_of(classified(end)) == 137);
    end.out_of_memory = false;
    CHECK(status_of(end) == SandboxStatus::output_limit);
    // Whoever printed too much and ended well keeps its exit code.
    end.payload = exited(7);
    CHECK(status_of(end) == SandboxStatus::output_limit);
    CHECK(exit_code_of(classified(end)) == 7);
}

TEST_CASE("classify: what the kernel killed for memory counts unless the job ended well without it") {
    JobCounts counts;
    counts.oom_kills = 1;
    CHECK(status_of({.payload = exited(0)}, counts) == SandboxStatus::exited);
    CHECK(status_of({.payload = exited(1)}, counts) == SandboxStatus::oom_killed);
    CHECK(status_of({.payload = killed_by(SIGKILL)}, counts) == SandboxStatus::oom_killed);
    counts.oom_kills = 0;
    CHECK(status_of({.payload = killed_by(SIGKILL)}, counts) == SandboxStatus::signaled);
    CHECK(classified({.payload = exited(1)}, counts).oom_kills == 0u);
}

TEST_CASE("classify: processor time that a limit of each process has ended is time") {
    JobCounts counts;
    counts.cpu_timeout = kSecond;
    PayloadEnd end = killed_by(SIGKILL);
    end.cpu_usec = 1'000'000;
    CHECK(status_of({.payload = end}, counts) == SandboxStatus::timed_out);
    end.cpu_usec = 999'000;  // killed by somebody else, before
    CHECK(status_of({.payload = end}, counts) == SandboxStatus::signaled);
    end.status = SIGXCPU;  // which counts whole ticks, and strikes before its time
    end.cpu_usec = 700'000;
    CHECK(status_of({.payload = end}, counts) == SandboxStatus::timed_out);
    end.cpu_usec = 100'000;  // sent by the job itself
    CHECK(status_of({.payload = end}, counts) == SandboxStatus::signaled);
    end.cpu_usec = 1'000'000;
    counts.usage.cpu_usec = 1'000'000;  // where a group counts, there is no rlimit
    CHECK(status_of({.payload = end}, counts) == SandboxStatus::signaled);
    counts.usage.cpu_usec.reset();
    end = exited(0);  // it came to its end
    end.cpu_usec = 2'000'000;
    CHECK(status_of({.payload = end}, counts) == SandboxStatus::exited);
    end = killed_by(SIGXCPU);  // a limit that it has set itself
    CHECK(status_of({.payload = end}) == SandboxStatus::signaled);
}

TEST_CASE("classify: a group's figures are the job's; where none counts, the payload's own") {
    PayloadEnd end = exited(0);
    end.cpu_usec = 1'500'000;
    end.most_memory = 4096;
    const SandboxResult own = classified({.payload = end, .wall = std::chrono::milliseconds(2500)});
    CHECK(own.wall_seconds == doctest::Approx(2.5));
    CHECK(own.cpu_seconds.value() == doctest::Approx(1.5));
    CHECK(own.peak_memory_bytes == 4096u);
    CHECK_FALSE(own.peak_processes);
    CHECK_FALSE(own.oom_kills);

    JobCounts counts;
    counts.usage = {
        .cpu_usec = 250'000, .peak_memory = 1 << 20, .peak_processes = 3, .read_bytes = 10, .written_bytes = 20};
    const SandboxResult grouped = classified({.payload = end}, counts);
    CHECK(grouped.cpu_seconds.value() == doctest::Approx(0.25));
    CHECK(grouped.peak_memory_bytes == 1u << 20);
    CHECK(grouped.peak_processes == 3u);
    CHECK(grouped.read_bytes == 10u);
    CHECK(grouped.written_bytes == 20u);
}

TEST_CASE("classify: a job that never ran says why, and what would help") {
    const SandboxResult failed = failed_result(Error{ENOENT, "no such program", "name another"});
    CHECK(failed.status == SandboxStatus::setup_failed);
    CHECK(failed.error == "no such program");
    CHECK(failed.hint == "name another");
    CHECK(exit_code_of(failed) == 125);
}
