// pinfold: reads a bundle's config.json, sets up the isolation it asks for, and becomes its payload's parent.
// The way of one container: main -> verb_run -> load_spec -> make_plan -> run_container -> run_init -> execve.
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cli/parse_arguments.hpp"
#include "cli/verbs.hpp"

namespace {

using namespace pinfold;

struct Dispatch {
    const CommandLine& line;

    Result<int> operator()(const RunOptions& options) const {
        return named("run", options.id, verb_run(options, line));
    }
    Result<int> operator()(const StateOptions& options) const {
        return named("state", options.id, verb_state(options, line));
    }
    Result<int> operator()(const DeleteOptions& options) const {
        return named("delete", options.id, verb_delete(options, line));
    }

    static Result<int> named(const char* verb, const std::string& id, Result<int> result) {
        if (result) return result;
        return std::move(result).error().within(concat(verb, " ", quoted(id)));
    }
};

}  // namespace

int main(int argc, char** argv) {
    const auto parsed = parse_arguments(argc, argv);
    if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
    const CommandLine& line = *std::get_if<CommandLine>(&parsed);

    Result<void> opened = open_log(line.global.log);
    Result<int> result = opened ? std::visit(Dispatch{line}, line.verb) : Result<int>(std::move(opened).error());
    if (result) return *result;
    log_error(result.error());
    return 1;
}
