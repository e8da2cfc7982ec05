// One loop around a job that runs.
#include "sandbox/supervise_job.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "process/sandbox_init.hpp"
#include "sandbox/watchdog.hpp"

namespace pinfold {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

// How long the output of a job that has ended waits for somebody to take it, if the job's own time is over by then.
constexpr nanoseconds kPatience = 2s;

class Supervisor {
public:
    explicit Supervisor(const JobWatch& watch) : watch_(watch) {}

    Result<JobEnd> await_end();

private:
    enum Slot : size_t {
        kProcess,
        kLink,
        kSignals,
        kWall,
        kCpu,
        kMemory,
        kDenials,
        kInput,
        kOutput,
        kCount = kOutput + Output::kSlots
    };

    Result<void> start_timers();
    void finish_output();
    void take_signals();
    Result<void> check_cpu();
    Result<void> check_memory();
    void kill();
    bool was_killed() const { return end_.timed_out || end_.out_of_memory; }
    int receiver() const { return watch_.receiver >= 0 ? watch_.receiver : watch_.process; }
    Result<void> take_report();
    Result<void> take_death();

    const JobWatch& watch_;
    UniqueFd wall_;
    UniqueFd cpu_;
    UniqueFd memory_;
    JobEnd end_;
    std::set<int> seen_;  // signals that were passed on
    bool done_ = false;
};

// A deadline that cannot be set ends the job now.
Result<void> Supervisor::start_timers() {
    if (watch_.timeout) {
        wall_ = TRY(make_timer(CLOCK_MONOTONIC));
        TRY(set_timer(wall_, *watch_.timeout));
    }
    if (watch_.cpu_timeout) {
        cpu_ = TRY(make_timer(CLOCK_MONOTONIC));
        TRY(check_cpu());
    }
    if (watch_.memory != nullptr) {
        memory_ = TRY(make_timer(CLOCK_MONOTONIC));
        TRY(check_memory());
    }
    return {};
}

Result<JobEnd> Supervisor::await_end() {
    TRY(start_timers());
    std::array<pollfd, kCount> slots{};
    slots[kProcess] = {watch_.process, POLLIN, 0};
    slots[kLink] = {watch_.link ? watch_.link->fd() : -1, POLLIN, 0};
    slots[kSignals] = {watch_.signals.fd(), POLLIN, 0};
    slots[kWall] = {wall_.get(), POLLIN, 0};
    slots[kCpu] = {cpu_.get(), POLLIN, 0};
    slots[kMemory] = {memory_.get(), POLLIN, 0};
    const auto output_slots = std::span(slots).last<Output::kSlots>();
    Output& output = watch_.streams.output;
    std::optional<Flow>& input = watch_.streams.input;
    watch_.streams.streams = {};  // or we would wait for ourselves to end
    while (!done_) {
        slots[kDenials] = {watch_.denials ? watch_.denials->fd() : -1, POLLIN, 0};
        slots[kInput] = input ? input->slot() : pollfd{-1, 0, 0};
        output.prepare(output_slots);
        if (::poll(slots.data(), slots.size(), -1) < 0) {
            if (errno == EINTR) continue;
            return errno_error("wait for the job: poll");
        }
        if (slots[kDenials].revents != 0) watch_.denials->serve(slots[kDenials].revents);
        if (slots[kInput].revents != 0) input->move(SIZE_MAX);
        output.serve(output_slots);
        if (slots[kSignals].revents != 0) take_signals();
        if (slots[kCpu].revents != 0) TRY(check_cpu());
        if (slots[kMemory].revents != 0) TRY(check_memory());
        if (slots[kWall].revents != 0) {
            end_.timed_out = true;
            kill();
        }
        if (slots[kLink].revents != 0) TRY(take_report());
        if (slots[kProcess].revents != 0) TRY(take_death());
    }
    end_.wall = nanoseconds(monotonic_ns() - watch_.began);
    finish_output();
    return end_;
}

// As long as the job could have lived, and a little: who reads slowly gets all, and who does not read holds nobody up.
void Supervisor::finish_output() {
    Output& output = watch_.streams.output;
    const int64_t soon = monotonic_ns() + kPatience.count();
    const bool has_time = watch_.timeout && seen_.empty();
    output.finish(has_time ? std::max(soon, watch_.began + watch_.timeout->count()) : soon, watch_.signals.fd());
    end_.over_limit = output.over_limit();
    if (output.cut()) log_warning("the end of the output is lost: nobody took it, or it could not be written");
}

// A job cannot use up its time faster than with all processors, so this need not look more often than that.
Result<void> Supervisor::check_cpu() {
    const std::optional<uint64_t> used = measure_cpu(watch_.group);
    if (!used && watch_.memory == nullptr) return {};  // RLIMIT_CPU holds each process then
    const nanoseconds left =
        *watch_.cpu_timeout - (used ? nanoseconds(std::chrono::microseconds(*used)) : watch_.memory->cpu_time());
    if (left <= 0ns) {
        end_.timed_out = true;
        kill();
        return {};
    }
    const long processors = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
    return set_timer(cpu_, std::max<nanoseconds>(left / processors, 2ms));
}

Result<void> Supervisor::check_memory() {
    const uint64_t used = watch_.memory->measure();
    if (watch_.memory->is_above(used)) {
        end_.out_of_memory = true;
        kill();
    }
    return set_timer(memory_, watch_.memory->rest(used));
}

// The payload may do with them what it likes, once; whoever sends one again means it.
void Supervisor::take_signals() {
    signalfd_siginfo info;
    while (::read(watch_.signals.fd(), &info, sizeof info) == ssize_t(sizeof info)) {
        const int number = static_cast<int>(info.ssi_signo);
        if (number == SIGPIPE || number == SIGWINCH) continue;
        const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
        if (ends && !seen_.insert(number).second) kill();
        else if (auto sent = send_signal(receiver(), number); !sent) log_warning(sent.error().message);
    }
}

// All at once, where the group can: nothing can get away by forking.
void Supervisor::kill() {
    if (watch_.memory != nullptr) end_.cpu = watch_.memory->cpu_time();
    if (watch_.link != nullptr) kill_group(watch_.group);
    else kill_everyone(watch_.group, watch_.mark);
    if (auto sent = send_signal(receiver(), SIGKILL); !sent) log_warning(sent.error().message);
}

Result<void> Supervisor::take_report() {
    const std::optional<Packet> packet = TRY(watch_.link->receive());
    if (packet && packet->message == Message::failed && !was_killed()) return packet->error;
    done_ = packet && (packet->message == Message::ended || packet->message == Message::failed);
    if (done_ && packet->message == Message::ended) end_.payload = packet->end;
    if (packet) return {};
    TRY(pinfold::await_end(watch_.process));  // the sandbox init is dying
    done_ = true;
    siginfo_t end{};  // left there for whoever holds the sandbox init to reap
    const bool known = ::syscall(SYS_waitid, P_PIDFD, watch_.process, &end, WEXITED | WNOWAIT, nullptr) == 0;
    if (!known || end.si_code != CLD_EXITED || was_killed()) return {};
    end_.timed_out = end.si_status == kDeadlinePassed;
    if (end_.timed_out) return {};
    return plain_error("the sandbox's first process failed, and cannot tell how the program ended");
}

// A sandbox init's end says nothing of the payload; a payload's own does.
Result<void> Supervisor::take_death() {
    done_ = true;
    if (watch_.link != nullptr) return {};
    const ChildEnd end = TRY_IN("wait for the job", reap_held(watch_.process));
    kill_everyone(watch_.group, watch_.mark);
    end_.payload = payload_end(end.how, end.usage);
    return {};
}

}  // namespace

Result<JobEnd> supervise_job(const JobWatch& watch) { return Supervisor(watch).await_end(); }

}  // namespace pinfold
