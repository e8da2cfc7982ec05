// The result of a job, to where its caller wants it.
#include "cli/result_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/verbs.hpp"

namespace pinfold {

Result<ResultFile> ResultFile::open(const std::string& path, std::string_view option) {
    ResultFile file;
    file.to_stdout_ = path == "-";
    if (path.empty() || file.to_stdout_) return file;
    const size_t slash = path.rfind('/');
    file.name_ = path.substr(slash == path.npos ? 0 : slash + 1);
    const std::string directory = slash == path.npos ? "." : path.substr(0, slash + 1);
    file.directory_ = TRY_IN(option, open_at(AT_FDCWD, directory, O_DIRECTORY | O_PATH));
    if (file.name_.empty()) return plain_error(concat(option, " ", quoted(path), ": is a directory"));
    struct stat old {};
    const bool exists = ::fstatat(file.directory_.get(), file.name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!exists || S_ISREG(old.st_mode)) return file;
    return plain_error(concat(option, " ", quoted(path), ": is no file, and would be replaced by one"))
        .with_hint("for standard output: --result -");
}

Result<void> ResultFile::write(const std::string& text) const {
    if (to_stdout_) return print(text);
    if (!directory_) return {};
    // A job that can write to the directory must not be able to take the name first.
    uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) return errno_error("getrandom");
    const std::string unfinished = concat('.', name_, '.', number, ".new");
    const UniqueFd file = TRY(open_at(directory_.get(), unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
    Result<void> written = write_once(file.get(), text, name_);
    if (written && ::renameat(directory_.get(), unfinished.c_str(), directory_.get(), name_.c_str()) != 0)
        written = errno_error(concat("rename to ", name_));
    if (!written) ::unlinkat(directory_.get(), unfinished.c_str(), 0);
    return written;
}

Result<int> conclude(const SandboxResult& result, const ResultFile& file) {
    TRY_IN("--result", file.write(to_json(result)));
    if (!result.error.empty()) return Error{0, result.error, result.hint};
    return exit_code_of(result);
}

Result<uint64_t> output_limit(const std::string& text, bool capture) {
    constexpr uint64_t kMostCaptured = 16 << 20;
    if (text.empty()) return capture ? kMostCaptured : 0;
    const std::optional<int64_t> size = parse_size(text);
    if (size && *size > 0) return uint64_t(*size);
    return plain_error(concat("--output-limit ", quoted(text), ": expected a size, as in 1m"));
}

}  // namespace pinfold
