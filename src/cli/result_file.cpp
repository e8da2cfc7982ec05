// The result of a job, to where its caller wants it.
#include "cli/result_file.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/verbs.hpp"
#include "sandbox/classify.hpp"
#include "sandbox/output.hpp"

namespace pinfold {

namespace {

// Whether a file can be made here, and take the place of the old one. It is not kept: a pinfold that starts itself
// again would leave its name behind where it has one.
Result<void> check_replaceable(int directory, const struct stat* old) {
    TRY(NewFile::create(directory, 0666));
    struct stat place {};
    if (old == nullptr || ::fstat(directory, &place) != 0 || (place.st_mode & S_ISVTX) == 0) return {};
    const uid_t self = ::geteuid();
    if (self == 0 || self == old->st_uid || self == place.st_uid) return {};
    return plain_error("belongs to another user, and its directory lets nobody else replace it");
}

// Who asks for words gets them after a quiet end, too.
void tell_end(const SandboxResult& result, bool verbose) {
    std::vector<std::string> lines = explain(result);
    if (lines.empty() && verbose && result.exit_code && result.status != SandboxStatus::setup_failed)
        lines.push_back(concat("exited with ", *result.exit_code, " after ", in_seconds(result.wall_seconds)));
    for (const std::string& line : lines) log_notice(line);
}

}  // namespace

Result<ResultFile> ResultFile::open(const std::string& path, std::string_view option) {
    ResultFile file;
    file.to_stdout_ = path == "-";
    if (file.to_stdout_ && standard_output_was_closed())
        return plain_error(concat(option, " -: standard output is closed"));
    if (path.empty() || file.to_stdout_) return file;
    Parent parent = TRY_IN(option, open_parent(path));
    file.directory_ = std::move(parent.directory);
    file.name_ = std::move(parent.name);
    if (file.name_.empty()) return plain_error(concat(option, " ", quoted(path), ": is a directory"));
    struct stat old {};
    const bool exists = ::fstatat(file.directory_.get(), file.name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (exists && !S_ISREG(old.st_mode))
        return plain_error(concat(option, " ", quoted(path), ": is no file, and would be replaced by one"))
            .with_hint("for standard output: --result -");
    TRY_IN(concat(option, " ", quoted(path)), check_replaceable(file.directory_.get(), exists ? &old : nullptr));
    return file;
}

// By the rules for writing it: a file, and not what a link leads to.
void ResultFile::remove_earlier() const {
    if (directory_) ::unlinkat(directory_.get(), name_.c_str(), 0);
}

void remove_earlier_result(const std::string& path) {
    const auto remove = [&] {
        if (const Result<ResultFile> file = ResultFile::open(path)) file->remove_earlier();
    };
    if (!has_borrowed_rights()) return remove();
    const std::optional<uid_t> caller = sudo_caller();
    const char* group = std::getenv("SUDO_GID");
    const std::optional<gid_t> gid = parse_number<gid_t>(group == nullptr ? "" : group);
    if (path.empty() || !caller || !gid) return;  // it is removed once it has passed the gate
    const pid_t pid = ::fork();
    if (pid < 0) return;
    if (pid == 0) {
        if (::setgroups(0, nullptr) == 0 && ::setresgid(*gid, *gid, *gid) == 0 &&
            ::setresuid(*caller, *caller, *caller) == 0)
            remove();
        ::_exit(0);
    }
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

Result<void> ResultFile::write(const std::string& text) {
    return write([&](const TextSink& sink) { return sink(text); });
}

Result<void> ResultFile::write(const std::function<Result<void>(const TextSink&)>& tell) {
    written_ = true;
    if (to_stdout_) return tell(print);
    if (!directory_) return {};
    // A job that can write to the directory finds no name there that it could take first, and a kill leaves none.
    NewFile file = TRY_IN(name_, NewFile::create(directory_.get(), 0666));
    TRY_IN(name_, tell([&](std::string_view piece) { return file.append(piece); }));
    return file.commit(name_);
}

Result<int> conclude(SandboxResult result, const CommandLine& line, bool verbose) {
    result.error = line.gate->in_callers_words(std::move(result.error));
    constexpr size_t kMostTold = 10;
    for (size_t i = 0; i < result.copy_failures.size(); ++i) {
        CopyFailure& failure = result.copy_failures[i];
        failure.error = line.gate->in_callers_words(std::move(failure.error));
        if (i < kMostTold) log_error(Error{0, concat("sandbox: ", failure.error), failure.hint});
    }
    if (result.copy_failures.size() > kMostTold)
        log_error(Error{0, concat("sandbox: ", result.copy_failures.size() - kMostTold, " more copies failed"),
                        "--result names them all"});
    TRY_IN("--result", line.result_file->write([&](const TextSink& sink) { return write_json(result, sink); }));
    if (verbose || ::isatty(STDERR_FILENO) != 0) tell_end(result, verbose);
    if (result.status == SandboxStatus::setup_failed) return Error{0, result.error, result.hint};
    // The program has run to its end, and its own failure is the exit code if there is one.
    if (!result.error.empty()) log_error(plain_error(result.error).within(line.title));
    return exit_code_of(result);
}

Result<void> check_capture(bool capture, bool tee, const std::string& result) {
    if (tee && result == "-")
        return plain_error("--tee: standard output is for the result").with_hint("write that to a file, by --result");
    if (tee && !capture) return plain_error("--tee: nothing is captured").with_hint("without --capture all is printed");
    if (!capture || !result.empty()) return {};
    return plain_error("--capture: what it prints would be lost").with_hint("say by --result where it is to go");
}

Result<void> check_receipt(bool receipt, const std::string& result) {
    if (!receipt || !result.empty()) return {};
    return plain_error("--receipt: it is a part of the result, which nobody asked for")
        .with_hint("say by --result where that is to go");
}

Result<uint64_t> output_limit(const std::string& text, bool capture) {
    if (text.empty()) return uint64_t(0);
    const std::optional<int64_t> size = parse_size(text);
    if (!size || *size <= 0) return plain_error(concat("--output-limit ", quoted(text), ": expected a size, as in 1m"));
    if (capture && uint64_t(*size) > kMostCaptured)
        return plain_error(concat("--output-limit: found ", quoted(text), ", allowed with --capture: at most 256m"))
            .with_hint("without --capture and --result - there is no such bound: what it prints is passed on");
    return uint64_t(*size);
}

}  // namespace pinfold
