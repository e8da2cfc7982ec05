// A file or link that has its name from the moment on that it is complete.
#include "base/new_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/strings.hpp"

namespace pinfold {

namespace {

std::string temporary_name() {
    uint64_t number = 0;
    [[maybe_unused]] const ssize_t filled = ::getrandom(&number, sizeof number, 0);  // as good as any if it fails
    char text[32];
    std::snprintf(text, sizeof text, ".pinfold-%016lx", number);
    return text;
}

// What has a name that nobody can foresee finds it free, but for an accident.
template <class Make>
Result<std::string> under_temporary_name(const Make& make) {
    constexpr int kMostAccidents = 8;
    for (int attempt = 1;; ++attempt) {
        std::string name = temporary_name();
        Result<void> made = make(name);
        if (made) return name;
        if (made.error().code != EEXIST || attempt == kMostAccidents) return std::move(made).error();
    }
}

// Each byte is compared with the one before it: no buffer of zeros, and as fast as memcmp.
bool only_zeros(std::string_view bytes) {
    return bytes.empty() || (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

Result<void> rename_over(int directory, const std::string& temporary, const std::string& name) {
    if (::renameat(directory, temporary.c_str(), directory, name.c_str()) == 0) return {};
    Error error = errno_error(concat("replace ", quoted(name)));
    if (error.code == EBUSY) error.hint = "something is mounted there, and what is mounted cannot be replaced";
    ::unlinkat(directory, temporary.c_str(), 0);
    return error;
}

}  // namespace

const char* file_kind(unsigned mode) {
    switch (mode & S_IFMT) {
        case S_IFREG: return "file";
        case S_IFDIR: return "directory";
        case S_IFLNK: return "symbolic link";
        case S_IFIFO: return "fifo";
        case S_IFSOCK: return "socket";
        default: return "device";
    }
}

Result<void> check_replaceable(int directory, const std::string& name) {
    struct stat info {};
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};  // making it tells why
    if (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)) return {};
    return Error{EEXIST, concat(quoted(name), " is a ", file_kind(info.st_mode), " already"), {}};
}

// Without a name the file is gone with its last descriptor, also where this process is killed.
Result<NewFile> NewFile::create(int directory, unsigned mode) {
    UniqueFd nameless(::openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
    if (nameless) return NewFile(directory, std::move(nameless), "");
    if (errno != EOPNOTSUPP) return errno_error("make a file");
    UniqueFd named;
    std::string name = TRY(under_temporary_name([&](const std::string& one) -> Result<void> {
        named.reset(::openat(directory, one.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, mode));
        return named ? Result<void>() : errno_error("make a file");
    }));
    return NewFile(directory, std::move(named), std::move(name));
}

NewFile::~NewFile() {
    if (fd_ && !name_.empty()) ::unlinkat(directory_, name_.c_str(), 0);
}

// By position, so that zeros are left out by not writing them.
Result<void> NewFile::append(std::string_view bytes) {
    const uint64_t end = size_ + bytes.size();
    for (const bool hole = only_zeros(bytes); size_ < end && !hole; written_ = size_) {
        const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
        if (written < 0 && errno != EINTR) return errno_error("write");
        if (written <= 0) continue;
        bytes.remove_prefix(size_t(written));
        size_ += size_t(written);
    }
    size_ = end;
    return {};
}

Result<void> NewFile::finish() const {
    if (size_ == written_ || ::ftruncate(fd_.get(), static_cast<off_t>(size_)) == 0) return {};
    return errno_error("set the size");  // a hole at the end
}

Result<void> NewFile::commit(const std::string& name, const OwnFds& own) {
    TRY(finish());
    if (name_.empty()) {
        Result<void> linked = own.give_name(fd_.get(), directory_, name);
        if (linked || linked.error().code != EEXIST) return linked;
    }
    return rename_to(name, own);
}

Result<void> NewFile::rename_to(const std::string& name, const OwnFds& own) {
    TRY(finish());
    if (name_.empty())
        name_ = TRY(
            under_temporary_name([&](const std::string& one) { return own.give_name(fd_.get(), directory_, one); }));
    return rename_over(directory_, std::exchange(name_, {}), name);
}

Result<void> NewFile::commit_new(const std::string& name) {
    TRY(finish());
    if (name_.empty()) return OwnFds().give_name(fd_.get(), directory_, name);
    if (::linkat(directory_, name_.c_str(), directory_, name.c_str(), 0) == 0) return {};
    return errno_error(concat("name ", quoted(name)));
}

Result<void> replace_file(int directory, const std::string& name, std::string_view text, unsigned mode) {
    NewFile file = TRY_IN(name, NewFile::create(directory, mode));
    TRY_IN(name, file.append(text));
    return file.rename_to(name);
}

Result<void> make_file(int directory, const std::string& name, std::string_view text, unsigned mode) {
    NewFile file = TRY_IN(name, NewFile::create(directory, mode));
    TRY_IN(name, file.append(text));
    return file.commit_new(name);
}

Result<void> make_link(int directory, const std::string& target, const std::string& name) {
    if (::symlinkat(target.c_str(), directory, name.c_str()) == 0) return {};
    if (errno != EEXIST) return errno_error(concat("link ", quoted(name)));
    TRY(check_replaceable(directory, name));
    const std::string temporary = TRY(under_temporary_name([&](const std::string& one) -> Result<void> {
        if (::symlinkat(target.c_str(), directory, one.c_str()) == 0) return {};
        return errno_error(concat("link ", quoted(name)));
    }));
    return rename_over(directory, temporary, name);
}

}  // namespace pinfold
