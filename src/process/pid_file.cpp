// --pid-file.
#include "process/pid_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

Result<PidFile> PidFile::write(const std::string& path, pid_t pid) {
    if (path.empty()) return PidFile("");
    // Written beside and renamed: whoever waits for the file never reads half of it.
    const std::string temporary = concat(path, ".", ::getpid(), ".new");
    PidFile unfinished(temporary);
    const UniqueFd fd = TRY(open_at(AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
    TRY(write_once(fd.get(), std::to_string(pid), temporary));
    if (::rename(temporary.c_str(), path.c_str()) != 0) return errno_error(concat("rename to ", path));
    unfinished.commit();
    return PidFile(path);
}

PidFile::PidFile(PidFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}

PidFile::~PidFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace pinfold
