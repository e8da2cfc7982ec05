// Where this program's file lies.
#include "base/own_path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <climits>

#include "base/fs.hpp"

namespace pinfold {

namespace {

constexpr const char* kOwnBinary = "/proc/self/exe";

bool is_same_file(const char* one, const char* other) {
    struct stat a {};
    struct stat b {};
    return ::stat(one, &a) == 0 && ::stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

std::string own_path() {
    char link[PATH_MAX];
    const ssize_t length = ::readlink(kOwnBinary, link, sizeof link);
    const std::string path(link, length > 0 ? size_t(length) : 0);
    if (is_same_file(path.c_str(), kOwnBinary)) return path;
    const Result<std::string> arguments = read_file("/proc/self/cmdline");
    return arguments ? arguments->substr(0, arguments->find('\0')) : std::string();
}

}  // namespace pinfold
