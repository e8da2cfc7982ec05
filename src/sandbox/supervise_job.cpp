// One loop around a job that runs.
#include "sandbox/supervise_job.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <set>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "process/sandbox_init.hpp"
#include "process/typed_signals.hpp"
#include "sandbox/watchdog.hpp"

namespace pinfold {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

// How long the output of a job that has ended waits for somebody to take it, if the job's own time is over by then.
constexpr nanoseconds kPatience = 2s;

// When to look again after whoever was too long is not dead yet.
constexpr nanoseconds kUntilDead = 10ms;

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
        kAnswers,
        kInput,
        kTerminal,
        kOutput = kTerminal + PtyRelay::kSlots,
        kCount = kOutput + Output::kSlots
    };

    Result<void> start_timers();
    void finish_output();
    void finish_terminal(int64_t give_up_at);
    void take_signals();
    Result<bool> pass_on(const signalfd_siginfo& info) const;
    Result<void> end_time();
    Result<void> check_cpu();
    Result<void> check_memory();
    void kill();
    // Where we come late, others have kept its deadline. What had another end came to that in its time.
    bool was_killed_for_us() const {
        return !end_.payload || (end_.payload->signaled && end_.payload->status == SIGKILL);
    }
    bool was_killed() const { return end_.timed_out || end_.out_of_memory; }
    int receiver() const { return watch_.receiver >= 0 ? watch_.receiver : watch_.process; }
    Result<void> take_report();
    Result<void> take_death();

    const JobWatch& watch_;
    UniqueFd wall_;
    int64_t deadline_ = INT64_MAX;
    UniqueFd cpu_;
    UniqueFd memory_;
    JobEnd end_;
    std::set<int> seen_;  // signals that were passed on
    bool done_ = false;
};

// A deadline that cannot be set ends the job now.
Result<void> Supervisor::start_timers() {
    if (watch_.timeout) {
        // The time of a sandbox that stays goes on while the machine is suspended.
        wall_ = TRY(make_timer(watch_.stays ? CLOCK_BOOTTIME : CLOCK_MONOTONIC));
        TRY(set_timer(wall_, *watch_.timeout));
        deadline_ = monotonic_ns() + watch_.timeout->count();
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
    const auto terminal_slots = std::span(slots).subspan<kTerminal, PtyRelay::kSlots>();
    for (pollfd& slot : terminal_slots) slot.fd = -1;
    const auto output_slots = std::span(slots).last<Output::kSlots>();
    Output& output = watch_.streams.output;
    std::optional<Flow>& input = watch_.streams.input;
    watch_.streams.streams = {};  // or we would wait for ourselves to end
    while (!done_) {
        slots[kDenials] = {watch_.denials ? watch_.denials->fd() : -1, POLLIN, 0};
        slots[kAnswers] = {watch_.denials ? watch_.denials->timer() : -1, POLLIN, 0};
        slots[kInput] = input ? input->slot() : pollfd{-1, 0, 0};
        if (watch_.terminal != nullptr) watch_.terminal->prepare(terminal_slots);
        output.prepare(output_slots);
        if (::poll(slots.data(), slots.size(), -1) < 0) {
            if (errno == EINTR) continue;
            return errno_error("wait for the job: poll");
        }
        if (slots[kDenials].revents != 0) watch_.denials->serve(slots[kDenials].revents);
        if (slots[kAnswers].revents != 0) watch_.denials->answer_waiting();
        if (slots[kInput].revents != 0) input->move(SIZE_MAX);
        if (watch_.terminal != nullptr) watch_.terminal->serve(terminal_slots);
        output.serve(output_slots);
        if (slots[kSignals].revents != 0) take_signals();
        if (slots[kLink].revents != 0) TRY(take_report());
        if (slots[kProcess].revents != 0) TRY(take_death());
        if (done_) {
            end_.timed_out = end_.timed_out || (slots[kWall].revents != 0 && was_killed_for_us());
            break;
        }
        if (slots[kCpu].revents != 0) TRY(check_cpu());
        if (slots[kMemory].revents != 0) TRY(check_memory());
        if (slots[kWall].revents != 0) TRY(end_time());
    }
    end_.ended_at = monotonic_ns();
    end_.wall = nanoseconds(end_.ended_at - watch_.began);
    finish_output();
    return end_;
}

// As long as the job could have lived, and a little: who reads slowly gets all, and who does not read holds nobody up.
void Supervisor::finish_output() {
    Output& output = watch_.streams.output;
    const int64_t soon = monotonic_ns() + kPatience.count();
    const bool has_time = watch_.timeout && seen_.empty();
    const int64_t give_up_at = has_time ? std::max(soon, watch_.began + watch_.timeout->count()) : soon;
    if (watch_.terminal != nullptr) finish_terminal(give_up_at);
    output.finish(give_up_at, watch_.signals.fd());
    end_.over_limit = output.over_limit();
    end_.dropped = output.has_dropped();
    end_.output_error = output.failure();
    if (output.cut()) log_warning("the end of the output is lost: nobody took it");
}

// The pty still holds what was written last.
void Supervisor::finish_terminal(int64_t give_up_at) {
    while (watch_.terminal->output_left()) {
        pollfd slots[] = {watch_.terminal->output_slot(), {watch_.signals.fd(), POLLIN, 0}};
        const int64_t left = std::max<int64_t>(0, give_up_at - monotonic_ns());
        const int count = ::poll(slots, 2, static_cast<int>(std::min<int64_t>(left / 1000000, INT_MAX)));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0 || (slots[1].revents != 0 && !refuse_to_go_on(watch_.signals.fd()))) return;
        if (slots[0].revents != 0) watch_.terminal->write_output();
    }
}

Result<void> Supervisor::end_time() {
    end_.timed_out = true;
    kill();
    return set_timer(wall_, kUntilDead);
}

// A job cannot use up its time faster than with all processors, so this need not look more often than that.
Result<void> Supervisor::check_cpu() {
    const std::optional<uint64_t> used = measure_cpu(watch_.group);
    if (!used && watch_.memory == nullptr) return {};  // RLIMIT_CPU holds each process then
    const nanoseconds left =
        *watch_.cpu_timeout - (used ? nanoseconds(std::chrono::microseconds(*used)) : watch_.memory->cpu_time());
    if (left <= 0ns) {
        end_.cpu_timed_out = end_.cpu_timed_out || !end_.timed_out;  // it may come here again before it is dead
        end_.timed_out = true;
        kill();
        return set_timer(cpu_, kUntilDead);
    }
    const long processors = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
    return set_timer(cpu_, std::max<nanoseconds>(left / processors, 2ms));
}

Result<void> Supervisor::check_memory() {
    const uint64_t used = watch_.memory->measure(deadline_);
    end_.peak_memory = std::max(used, end_.peak_memory.value_or(0));
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
        if (number == SIGWINCH && watch_.terminal != nullptr) watch_.terminal->adopt_window_size();
        if (number == SIGCONT && watch_.terminal != nullptr) watch_.terminal->reclaim_terminal();
        if (number == SIGPIPE || number == SIGWINCH || watch_.stays) continue;
        const bool ends = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
        if (ends && !seen_.insert(number).second) kill();
        else if (auto sent = pass_on(info); !sent) log_warning(sent.error().message);
    }
}

// Another runtime's container has a first process that we know too little of to send anything to its group.
Result<bool> Supervisor::pass_on(const signalfd_siginfo& info) const {
    const int number = static_cast<int>(info.ssi_signo);
    if (!came_from_terminal(info) || watch_.receiver >= 0) return send_signal(receiver(), number);
    if (watch_.link != nullptr) return send_to_payload_group(watch_.process, number);
    return send_signal_to_group(watch_.process, number);
}

// All at once, where the group can: nothing can get away by forking. What they have used is told by those that live.
void Supervisor::kill() {
    if (watch_.memory != nullptr && !end_.cpu) end_.cpu = watch_.memory->cpu_time();
    if (watch_.link != nullptr) kill_group(watch_.group);
    else kill_everyone(watch_.group, watch_.mark);
    if (auto sent = send_signal(receiver(), SIGKILL); !sent) log_warning(sent.error().message);
    if (watch_.stays) thaw_for_kill(watch_.group);  // it may be paused
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
