// The monitor of a sandbox that stays.
#include "sandbox/monitor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"
#include "json/json.hpp"
#include "sandbox/audit_job.hpp"
#include "sandbox/classify.hpp"
#include "sandbox/job_file.hpp"
#include "sandbox/result_json.hpp"
#include "sandbox/worker.hpp"
#include "state/lifecycle.hpp"

namespace pinfold {

namespace {

constexpr const char* kResultFile = "result";
constexpr const char* kStopFile = "stop";
constexpr const char* kStopped = "stop";  // what stopped it, if pinfold stop did

std::string end_text(const SandboxResult& result) { return concat(rfc3339_now(), '\n', to_json(result)); }

Result<SandboxEnd> parse_end(std::string_view text) {
    const size_t line = text.find('\n');
    if (line == text.npos) return plain_error("how it ended was not written down whole");
    return SandboxEnd{std::string(text.substr(0, line)), TRY(parse_result(text.substr(line + 1)))};
}

// What the monitor holds besides the job itself. The files are made before the caller is told of the sandbox, and need
// no name later, when another may have removed it.
struct Record {
    UniqueFd result;
    UniqueFd directory;
};

// The caller's are for the caller: a job that prints much takes time of ours, and files. Who may not raise them above
// their bounds has at least those.
void raise_limits() {
    for (const auto resource : {RLIMIT_FSIZE, RLIMIT_CPU}) {
        rlimit limit{};
        if (::getrlimit(resource, &limit) != 0) continue;
        const rlimit none{RLIM_INFINITY, RLIM_INFINITY}, bound{limit.rlim_max, limit.rlim_max};
        if (::setrlimit(resource, &none) != 0) ::setrlimit(resource, &bound);
    }
}

// How it ended is written down also where the disk is full by then.
Result<void> reserve(int file) {
    constexpr off_t kLongestEnd = 16 << 10;
    if (::fallocate(file, FALLOC_FL_KEEP_SIZE, 0, kLongestEnd) == 0 || errno == EOPNOTSUPP) return {};
    return errno_error("reserve room for how it ends");
}

Result<void> begin(const SandboxJob& job, PreparedJob& prepared, const RunningContainer& running, const Answer& answer,
                   Record& record) {
    TRY(keep_job(job, *running.state));
    TRY(running.state->forget_last_end());
    record.result = TRY(running.state->make_locked_file(kResultFile));
    record.directory = TRY(running.state->hold());
    UniqueFd output = TRY(running.state->make_locked_file(kOutputFile));
    raise_limits();
    TRY(reserve(record.result.get()));
    prepared.streams.output.keep_in(
        TRY(OutputLog::create(std::move(output), job.output_limit == 0 ? kUsuallyCaptured : job.output_limit)));
    TRY(leave_caller("pinfold-monitor"));
    return answer(prepared.plan.id);
}

// A file that whoever stops the sandbox holds locked until that is done. One that was interrupted has stopped nothing.
bool is_being_stopped(int directory) {
    const Result<UniqueFd> file = open_at(directory, kStopFile, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    return file && ::flock(file->get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

SandboxResult shortened(const SandboxResult& whole) {
    SandboxResult least;
    least.status = whole.status;
    least.exit_code = whole.exit_code;
    least.signal = whole.signal;
    least.stopped_by = whole.stopped_by;
    least.truncated = whole.truncated;
    least.wall_seconds = whole.wall_seconds;
    least.cpu_seconds = whole.cpu_seconds;
    least.denied.reset();
    return least;
}

// A limit that has struck comes before who wanted to stop it.
void write_end(const Record& record, SandboxResult result) {
    if (result.stopped_by.empty() && is_being_stopped(record.directory.get())) result.stopped_by = kStopped;
    const int file = record.result.get();
    if (write_all(file, end_text(result), kResultFile)) return;
    // More than is reserved, and the disk is full: the rest is not known.
    const std::string least = end_text(shortened(result));
    const bool written = ::lseek(file, 0, SEEK_SET) == 0 && write_all(file, least, kResultFile).has_value();
    (void)!::ftruncate(file, written ? off_t(least.size()) : 0);
}

void monitor(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting, const Answer& answer) {
    Record record;
    const auto on_stay = [&](RunningContainer& running) { return begin(job, prepared, running, answer, record); };
    Result<SandboxResult> result = run_prepared(job, prepared, setting, on_stay);
    if (!result && !record.result) {
        (void)answer(result.error()).has_value();
        return;
    }
    log_result(prepared.audit, prepared.plan.id, result);
    prepared.streams.output.end_log();
    write_end(record, result ? std::move(*result) : failed_result(result.error()));
}

Result<UniqueFd> open_result(int directory) {
    Result<UniqueFd> file = open_state_file(directory, kResultFile, O_RDONLY);
    if (!file && file.error().code == ENOENT) return UniqueFd();
    return file;
}

Result<void> lock_shared(int file) {
    while (::flock(file, LOCK_SH) != 0) {
        if (errno != EINTR) return errno_error("wait for the monitor");
    }
    return {};
}

Result<std::optional<SandboxEnd>> read_end(int file) {
    const std::string text = TRY(read_all(file, kResultFile));
    if (text.empty()) return std::optional<SandboxEnd>();  // the monitor was killed
    return std::optional(TRY(parse_end(text)));
}

Result<void> require_sandbox(const ContainerState& state) {
    if (state.record.annotations.contains(kSandboxAnnotation)) return {};
    return plain_error(concat("container ", quoted(state.record.id), " is no sandbox"));
}

std::vector<std::string> command_of(const std::string& root, const std::string& id) {
    const Result<std::string> text = load_config_text(root, id);
    const Result<Json> config = text ? parse_json(*text, "config.json") : Result<Json>(text.error());
    const Json* process = config ? config->find("process") : nullptr;
    const Json* args = process != nullptr ? process->find("args") : nullptr;
    std::vector<std::string> words;
    if (args == nullptr || args->array() == nullptr) return words;
    for (const Json& word : *args->array()) {
        if (word.string() != nullptr) words.push_back(*word.string());
    }
    return words;
}

struct HeldSandbox {
    ContainerState state;
    UniqueFd directory;  // of this one: another may have its name by the time that it is needed
};

// Its maker holds the lock until all that belongs to it is there.
Result<HeldSandbox> load_sandbox(const std::string& root, const std::string& id) {
    const StateLock lock = TRY(StateLock::take(root, id));
    HeldSandbox sandbox{TRY(load_state(root, id)), TRY(lock.hold())};
    TRY(require_sandbox(sandbox.state));
    return sandbox;
}

// One that does not stay has no monitor, and a command all the same.
Error not_written(const std::string& root, const std::string& id) {
    if (!command_of(root, id).empty())
        return plain_error("it does not stay: its output and its end are with the pinfold that has started it");
    return plain_error("there is no output: it was started without a command")
        .with_hint("exec passes on what its program prints");
}

// Of one without a monitor: its first process tells nothing.
Result<void> await_init(const ContainerState& state) {
    const UniqueFd init = TRY(open_process(state.pid, state.started));
    return init ? await_end(init.get(), std::chrono::seconds(INT_MAX / 1000)) : Result<void>();
}

// Who has stopped it writes that down after its end, and holds the mark until then.
Result<void> await_stop(int directory) {
    const Result<UniqueFd> mark = open_state_file(directory, kStopFile, O_RDONLY);
    if (!mark) return mark.error().code == ENOENT ? Result<void>() : Result<void>(mark.error());
    while (::flock(mark->get(), LOCK_EX) != 0) {
        if (errno != EINTR) return errno_error("wait for who stops it");
    }
    return {};
}

struct Stopping {
    UniqueFd init;  // none: it has ended already
    UniqueFd mark;  // that it is being stopped, see is_being_stopped()
    UniqueFd directory;
};

Result<Stopping> ask_to_stop(const std::string& root, const std::string& id, ContainerState& state) {
    const StateLock lock = TRY(StateLock::take(root, id));
    state = TRY(load_state(root, id));
    TRY(require_sandbox(state));
    if (state.status == Status::stopped) return Stopping{};
    Stopping stopping{TRY(open_process(state.pid, state.started)), {}, TRY(lock.hold())};
    if (!stopping.init) return Stopping{};
    stopping.mark = TRY(open_state_file(stopping.directory.get(), kStopFile, O_RDWR | O_CREAT));
    TRY(lock_shared(stopping.mark.get()));
    TRY(send_signal(stopping.init.get(), SIGTERM));
    return stopping;
}

bool ends_within(int pidfd, std::chrono::nanoseconds time) {
    const int64_t until = monotonic_ns() + time.count();
    for (;;) {
        const int64_t left = std::clamp<int64_t>((until - monotonic_ns() + 999'999) / 1'000'000, 0, INT_MAX);
        pollfd slot{pidfd, POLLIN, 0};
        const int count = ::poll(&slot, 1, static_cast<int>(left));
        if (count > 0) return true;
        if (count == 0 && left == 0) return false;
    }
}

// One that has no monitor is written of by who has stopped it.
Result<void> record_stop(int directory) {
    Result<UniqueFd> file = open_state_file(directory, kResultFile, O_WRONLY | O_CREAT | O_EXCL);
    if (!file) return file.error().code == EEXIST ? Result<void>() : Result<void>(std::move(file).error());
    SandboxResult result;
    result.status = SandboxStatus::exited;
    result.exit_code = 0;
    result.stopped_by = kStopped;
    return write_all(file->get(), end_text(result), kResultFile);
}

// Its first process has ended: a monitor has little left to do.
Result<void> await_written(int directory) {
    const UniqueFd file = TRY(open_result(directory));
    return file ? lock_file(file.get(), LOCK_SH, "what its monitor writes") : record_stop(directory);
}

}  // namespace

Result<std::string> start_monitored(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting) {
    return in_lasting_worker([&](const Answer& answer) { monitor(job, prepared, setting, answer); }, setting.answer);
}

Result<std::optional<SandboxEnd>> load_end(const std::string& root, const std::string& id) {
    Result<UniqueFd> opened = open_state_file(root, id, kResultFile, O_RDONLY);
    if (!opened && opened.error().code == ENOENT) return std::optional<SandboxEnd>();
    const UniqueFd file = TRY(std::move(opened));
    if (!file || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return std::optional<SandboxEnd>();
    return read_end(file.get());
}

Result<SandboxEnd> await_sandbox(const std::string& root, const std::string& id, bool output) {
    const HeldSandbox sandbox = TRY(load_sandbox(root, id));
    const int directory = sandbox.directory.get();
    UniqueFd file = TRY(open_result(directory));
    if (!file && !command_of(root, id).empty()) return not_written(root, id);
    const Result<UniqueFd> log = open_state_file(directory, kOutputFile, O_RDONLY);  // now: it may be removed meanwhile
    if (!file) {
        TRY(await_init(sandbox.state));
        TRY(await_stop(directory));
        file = TRY(open_result(directory));
    }
    if (file) TRY(lock_shared(file.get()));
    std::optional<SandboxEnd> end = file ? TRY(read_end(file.get())) : std::nullopt;
    if (!end && file) return plain_error("it has ended, as its monitor was killed: how its command ended is not known");
    if (!end)
        return plain_error("it has ended, and nobody has written down how")
            .with_hint("of a sandbox without a command only pinfold stop does");
    uint64_t offset = 0;
    const auto keep = [&](size_t stream, std::string_view bytes) -> Result<void> {
        if (stream == kDropped) end->result.truncated = true;
        else (stream == 0 ? end->result.out : end->result.err) += bytes;
        return {};
    };
    if (output && log) TRY(read_output(log->get(), offset, keep));
    return std::move(*end);
}

Result<void> stop_sandbox(const std::string& root, const std::string& id, std::chrono::nanoseconds time) {
    ContainerState state;
    const Stopping stopping = TRY(ask_to_stop(root, id, state));
    const UniqueFd& init = stopping.init;
    if (!init) return {};
    // What is paused hears nothing.
    if (state.status == Status::paused || !ends_within(init.get(), time)) {
        TRY(send_signal(init.get(), SIGKILL));
        if (state.record.cgroup.exists()) kill_group(state.record.cgroup);
        thaw_for_kill(state.record.cgroup);
        TRY(await_end(init.get()));
    }
    Result<void> written = await_written(stopping.directory.get());
    // Whoever had started it, or somebody else, has removed it by now.
    return !written && written.error().code == ENOENT ? Result<void>() : std::move(written);
}

Result<void> await_stopper(const std::string& root, const std::string& id) {
    return await_stop(TRY(load_sandbox(root, id)).directory.get());
}

Result<void> show_output(const std::string& root, const std::string& id, bool follow, const OutputSink& sink) {
    const HeldSandbox sandbox = TRY(load_sandbox(root, id));
    const Result<UniqueFd> file = open_state_file(sandbox.directory.get(), kOutputFile, O_RDONLY);
    if (!file && file.error().code == ENOENT) return not_written(root, id);
    if (!file) return file.error();
    uint64_t offset = 0;
    return follow ? follow_output(file->get(), sink) : read_output(file->get(), offset, sink);
}

namespace {

std::optional<uint64_t> figure(const CgroupPath& place, const char* v2, const char* v1) {
    const std::optional<GroupLimit> found = read_limit(place, v2, v1);
    return found ? parse_number<uint64_t>(found->value) : std::nullopt;
}

std::string number_or_null(const std::optional<uint64_t>& number) { return number ? std::to_string(*number) : "null"; }

}  // namespace

std::optional<SandboxView> view_sandbox(const std::string& root, const ContainerState& state) {
    const ContainerRecord& record = state.record;
    if (!record.annotations.contains(kSandboxAnnotation)) return std::nullopt;
    SandboxView view{.command = command_of(root, record.id)};
    if (state.status == Status::stopped) {
        Result<std::optional<SandboxEnd>> end = load_end(root, record.id);
        if (end) view.end = std::move(*end);
        return view;
    }
    view.memory = figure(record.cgroup, "memory.current", "memory.usage_in_bytes");
    view.memory_limit = figure(record.cgroup, "memory.max", "memory.limit_in_bytes");
    view.processes = figure(record.cgroup, "pids.current", "pids.current");
    view.process_limit = figure(record.cgroup, "pids.max", "pids.max");
    view.cpu_usec = measure_cpu(record.cgroup);
    return view;
}

MoreMembers members_of(const SandboxView& view) {
    MoreMembers members = {{"command", json_list(view.command)}};
    const JsonObject usage = JsonObject()
                                 .add("memory_bytes", number_or_null(view.memory))
                                 .add("processes", number_or_null(view.processes))
                                 .add("cpu_usec", number_or_null(view.cpu_usec));
    const JsonObject limits = JsonObject()
                                  .add("memory_bytes", number_or_null(view.memory_limit))
                                  .add("processes", number_or_null(view.process_limit));
    if (!view.end) {
        members.emplace_back("usage", usage.text());
        members.emplace_back("limits", limits.text());
        return members;
    }
    const SandboxResult& result = view.end->result;
    const auto number = [](const std::optional<int>& value) { return value ? std::to_string(*value) : "null"; };
    members.emplace_back("ended", json_quoted(view.end->at));
    members.emplace_back("exit_code", number(result.exit_code));
    members.emplace_back("signal", number(result.signal));
    members.emplace_back("reason", json_quoted(status_word(result.status)));
    members.emplace_back("stopped_by", result.stopped_by.empty() ? "null" : json_quoted(result.stopped_by));
    return members;
}

}  // namespace pinfold
