// pinfold seccomp learn: runs a program in a sandbox and writes the profile that it needs.
#include <unistd.h>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cli/make_job.hpp"
#include "cli/result_file.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "sandbox/run_job.hpp"
#include "seccomp/profiles.hpp"

namespace pinfold {

namespace {

// What an earlier run has written, if there was one. A config.json would be replaced by its section: that is not meant.
Result<std::optional<Profile>> load_earlier(const std::string& path) {
    if (path.empty() || ::access(path.c_str(), F_OK) != 0) return std::optional<Profile>();
    const std::string text = TRY(read_document(path));
    const Json document = TRY(parse_json(text, path));
    if (document.find("linux")) return plain_error(concat(quoted(path), ": is a config.json, not a profile"));
    const bool has_slash = path.find('/') != std::string::npos;
    return std::optional<Profile>(TRY(find_explained_profile(has_slash ? path : concat("./", path))));
}

void tell_denied(const std::vector<DeniedCall>& calls) {
    for (const DeniedCall& call : calls) {
        log_warning(concat(call.name, " was denied and not learned, since no profile of pinfold allows it: ",
                           call.count, call.count == 1 ? " time" : " times", ", first by ", quoted(call.program)));
    }
}

}  // namespace

Result<int> verb_seccomp_learn(const SeccompLearnOptions& options, const CommandLine& line) {
    const bool to_stdout = options.output.empty();
    ResultFile file = TRY(ResultFile::open(to_stdout ? "-" : options.output, "-o"));
    const std::optional<Profile> earlier = TRY_IN("-o", load_earlier(options.output));
    SandboxOptions wanted = options;
    wanted.capture = to_stdout;  // or the program's words would be mixed with the profile
    wanted.seccomp = "learn";
    const SandboxJob job = TRY(make_job(wanted, *line.gate));
    Recorder recorder;
    SandboxSetting setting = setting_of(line);
    setting.recorder = &recorder;
    const SandboxResult result = run_job(job, setting);
    if (result.status != SandboxStatus::setup_failed) {
        if (to_stdout) TRY(write_once(STDERR_FILENO, result.out + result.err, "standard error"));
        if (result.denied) tell_denied(*result.denied);
        const std::string& program = job.command.empty() ? job.bundle : job.command[0];
        const Profile profile = recorder.learned(concat("learned from ", program), earlier);
        TRY_IN("-o", file.write(json_text(to_json(profile))));
    }
    if (!result.error.empty()) return Error{0, result.error, result.hint};
    return exit_code_of(result);
}

}  // namespace pinfold
