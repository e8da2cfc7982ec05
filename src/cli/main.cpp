// pinfold: reads a bundle's config.json, sets up the isolation it asks for, and becomes its payload's parent.
// The way of one container: main -> verb_run -> load_config -> make_plan -> run_container -> run_init -> execve.
#include <signal.h>

#include "base/log.hpp"
#include "base/standard_streams.hpp"
#include "cli/parse_arguments.hpp"

int main(int argc, char** argv) {
    using namespace pinfold;
    if (const Result<void> filled = fill_standard_streams(); !filled) {
        log_error(filled.error());
        return 1;
    }
    // A parent that ignores SIGCHLD has left us a kernel that reaps our children, exit status and all.
    ::signal(SIGCHLD, SIG_DFL);
    const auto parsed = parse_arguments(argc, argv);
    if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
    const CommandLine& line = *std::get_if<CommandLine>(&parsed);

    Result<void> opened = open_log(line.global.log);
    Result<int> result = opened ? line.verb(line) : Result<int>(std::move(opened).error());
    if (result) return *result;
    log_error(std::move(result).error().within(line.title));
    return line.failure;
}
