// pinfold sandbox: from options to a job, and from its result to an exit code.
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/limits.hpp"
#include "cli/verbs.hpp"
#include "sandbox/languages.hpp"
#include "sandbox/run_job.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kMostCaptured = 16 << 20;  // unless another limit was given

// "SRC:DST" at the last colon; without one both are the same, where that is possible.
Result<FileCopy> parse_pair(std::string_view option, const std::string& text, bool may_be_one) {
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos && may_be_one) return FileCopy{text, text};
    if (colon == std::string::npos || colon == 0 || colon + 1 == text.size())
        return plain_error(concat(option, ' ', quoted(text), ": expected SRC:DST"));
    return FileCopy{text.substr(0, colon), text.substr(colon + 1)};
}

Result<void> add_pairs(const SandboxOptions& options, SandboxJob& job) {
    for (const std::string& text : options.binds) {
        const FileCopy pair = TRY(parse_pair("--bind", text, true));
        job.binds.push_back({pair.source, pair.destination, true});
    }
    for (const std::string& text : options.readonly_binds) {
        const FileCopy pair = TRY(parse_pair("--ro-bind", text, true));
        job.binds.push_back({pair.source, pair.destination, false});
    }
    for (const std::string& text : options.copies_in) job.copy_in.push_back(TRY(parse_pair("--copy-in", text, false)));
    for (const std::string& text : options.copies_out) {
        job.copy_out.push_back(TRY(parse_pair("--copy-out", text, false)));
    }
    return {};
}

// The first word is the script's file; the others are its arguments.
Result<void> take_script(const std::string& name, SandboxJob& job) {
    const Language language = TRY(find_language(name));
    if (job.command.empty()) return plain_error("--lang: name the script's file, or - for standard input");
    const std::string& file = job.command[0];
    job.script = file == "-" ? TRY(read_all(STDIN_FILENO, "standard input")) : TRY(read_file(file));
    job.script_name = language.file;
    std::vector<std::string> command(language.command.begin(), language.command.end());
    command.push_back(job.script_name);
    command.insert(command.end(), job.command.begin() + 1, job.command.end());
    job.command = std::move(command);
    return {};
}

Result<SandboxJob> make_job(const SandboxOptions& options) {
    SandboxJob job;
    const WantedLimits wanted = TRY(resolve_limits(options.limits));
    job.limits = wanted.limits;
    job.network = wanted.network;
    job.command = options.args;
    if (!options.language.empty()) TRY(take_script(options.language, job));
    if (job.command.empty() && options.bundle.empty())
        return plain_error("nothing to run: name a program after --, or a script with --lang");
    job.rootfs = options.rootfs;
    job.bundle = options.bundle;
    TRY(add_pairs(options, job));
    job.env = options.env;
    job.cwd = options.cwd;
    job.user = options.user;
    job.seccomp = options.seccomp;
    job.writable_root = options.writable_root;
    job.require_cgroup = options.require_cgroup;
    job.name = options.name;
    job.capture = options.capture || options.result == "-";
    if (options.pass_stdin) job.input = STDIN_FILENO;
    if (!options.cpu_timeout.empty()) {
        job.cpu_timeout = parse_duration(options.cpu_timeout);
        if (!job.cpu_timeout || job.cpu_timeout->count() <= 0)
            return plain_error(concat("--cpu-timeout ", quoted(options.cpu_timeout), ": expected a time, as in 10s"));
    }
    if (job.capture) job.output_limit = kMostCaptured;
    if (!options.output_limit.empty()) {
        const auto size = parse_size(options.output_limit);
        if (!size || *size <= 0)
            return plain_error(concat("--output-limit ", quoted(options.output_limit), ": expected a size, as in 1m"));
        job.output_limit = uint64_t(*size);
    }
    return job;
}

// Where the result goes, opened before the job can change what its name leads to.
class ResultFile {
public:
    static Result<ResultFile> open(const std::string& path) {
        ResultFile file;
        if (path.empty() || path == "-") return file;
        const size_t slash = path.rfind('/');
        file.name_ = path.substr(slash == path.npos ? 0 : slash + 1);
        const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
        file.directory_ = TRY_IN("--result", open_at(AT_FDCWD, directory, O_DIRECTORY | O_PATH));
        if (file.name_.empty()) return plain_error(concat("--result ", quoted(path), ": is a directory"));
        return file;
    }

    // Whole or not at all, and in the place of a link, not through it.
    Result<void> write(const std::string& text) const {
        if (!directory_) return {};
        const std::string unfinished = concat('.', name_, '.', ::getpid(), ".new");
        const UniqueFd file =
            TRY(open_at(directory_.get(), unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
        Result<void> written = write_once(file.get(), text, name_);
        if (written && ::renameat(directory_.get(), unfinished.c_str(), directory_.get(), name_.c_str()) != 0)
            written = errno_error(concat("rename to ", name_));
        if (!written) ::unlinkat(directory_.get(), unfinished.c_str(), 0);
        return written;
    }

private:
    UniqueFd directory_;
    std::string name_;
};

}  // namespace

Result<int> verb_sandbox(const SandboxOptions& options, const CommandLine& line) {
    const ResultFile file = TRY(ResultFile::open(options.result));
    const SandboxJob job = TRY(make_job(options));
    const SandboxResult result =
        run_job(job, {line.global.root, line.global.cgroup_manager, line.global.policy, line.argv});
    if (options.result == "-") TRY(print(to_json(result)));
    else if (!options.result.empty()) TRY_IN("--result", file.write(to_json(result)));
    if (!result.error.empty()) return Error{0, result.error, result.hint};
    return exit_code_of(result);
}

}  // namespace pinfold
