// --pid-file.
#include "process/pid_file.hpp"

#include <unistd.h>

#include <utility>

#include "base/fs.hpp"

namespace pinfold {

Result<PidFile> PidFile::write(const std::string& path, pid_t pid) {
    if (path.empty()) return PidFile("");
    const Parent parent = TRY_IN(path, open_parent(path));
    TRY(replace_file(parent.directory.get(), parent.name, std::to_string(pid), 0644));
    return PidFile(path);
}

PidFile::PidFile(PidFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}

PidFile::~PidFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace pinfold
