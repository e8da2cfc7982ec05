// pinfold logs, wait and stop: of a sandbox that stays.
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/begin.hpp"
#include "cli/result_file.hpp"
#include "cli/verbs.hpp"
#include "sandbox/monitor.hpp"

namespace pinfold {

namespace {

// What is no sandbox is ended by the verbs that engines know.
Error explain_stop(Error error, const std::string& root, const std::string& id) {
    const Result<ContainerState> state = load_state(root, id);
    if (!state || state->record.annotations.contains(kSandboxAnnotation) || !error.hint.empty()) return error;
    return std::move(error).with_hint(concat("end it by pinfold kill ", id, " KILL"));
}

}  // namespace

Result<int> verb_logs(const LogsOptions& options, const CommandLine& line) {
    if (standard_output_was_closed()) return errno_error(EBADF, "write to standard output");
    const auto pass_on = [](size_t stream, std::string_view bytes) -> Result<void> {
        if (stream == kDropped) {
            log_warning("what it printed before is dropped: the newest is kept, see --output-limit");
            return {};
        }
        return stream == 0 ? write_all(STDOUT_FILENO, bytes, "standard output")
                           : write_all(STDERR_FILENO, bytes, "standard error");
    };
    TRY(show_output(line.global.root, options.id, options.follow, pass_on));
    return 0;
}

// Scripts have the exit code both ways: as a shell's wait gives it, and as other tools print it.
Result<int> verb_wait(const WaitOptions& options, const CommandLine& line) {
    const SandboxEnd end = TRY(await_sandbox(line.global.root, options.id, !options.result.empty()));
    TRY_IN("--result", line.result_file->write([&](const TextSink& sink) { return write_json(end.result, sink); }));
    const int code = exit_code_of(end.result);
    if (options.result != "-") TRY(print(concat(code, '\n')));
    return code;
}

Result<int> verb_stop(const StopOptions& options, const CommandLine& line) {
    const std::optional<std::chrono::nanoseconds> time = parse_duration(options.time);
    if (!time) return plain_error(concat("--time ", quoted(options.time), ": expected a time, as in 10s"));
    const auto stop = [&]() -> Result<int> {
        if (Result<void> stopped = stop_sandbox(line.global.root, options.id, *time); !stopped)
            return explain_stop(std::move(stopped).error(), line.global.root, options.id);
        return 0;
    };
    return audited(line, {"stop", options.id, "", {}}, stop, Signals::left_alone);
}

}  // namespace pinfold
