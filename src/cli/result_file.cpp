// The result of a job, to where its caller wants it.
#include "cli/result_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/verbs.hpp"
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

}  // namespace

Result<ResultFile> ResultFile::open(const std::string& path, std::string_view option) {
    ResultFile file;
    file.to_stdout_ = path == "-";
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

Result<int> conclude(SandboxResult result, const CommandLine& line) {
    result.error = line.gate->in_callers_words(std::move(result.error));
    TRY_IN("--result", line.result_file->write([&](const TextSink& sink) { return write_json(result, sink); }));
    if (!result.error.empty()) return Error{0, result.error, result.hint};
    return exit_code_of(result);
}

Result<void> check_capture(bool capture, const std::string& result) {
    if (!capture || !result.empty()) return {};
    return plain_error("--capture: what it prints would be lost").with_hint("say by --result where it is to go");
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
