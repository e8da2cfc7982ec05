// pinfold: reads a bundle's config.json, sets up the isolation it asks for, and becomes its payload's parent.
// The way of one container: main -> verb_run -> parse_config -> make_plan -> run_container -> run_child -> execve.
#include <signal.h>

#include "base/log.hpp"
#include "base/standard_streams.hpp"
#include "cli/admit.hpp"
#include "cli/parse_arguments.hpp"

int main(int argc, char** argv) {
    using namespace pinfold;
    if (const Result<void> filled = fill_standard_streams(); !filled) {
        log_error(filled.error());
        return 1;
    }
    // A parent that ignores SIGCHLD has left us a kernel that reaps our children, exit status and all.
    ::signal(SIGCHLD, SIG_DFL);
    CommandLine line;
    if (const std::optional<int> exit_code = parse_arguments(argc, argv, line)) return *exit_code;

    Result<Gate> gate = admit(line);
    line.gate = gate ? &*gate : nullptr;
    // A log that did not get through is not written to, not even with the reason why.
    Result<void> opened = gate || is_free(line) ? open_log(line.global.log) : Result<void>();
    Result<int> result = !opened ? Result<int>(std::move(opened).error())
                         : gate  ? line.verb(line)
                                 : Result<int>(std::move(gate).error());
    if (result) return *result;
    Error error = std::move(result).error().within(line.title);
    if (line.gate != nullptr) error.message = line.gate->in_callers_words(std::move(error.message));
    log_error(error);
    return line.failure;
}
