// Files by descriptor: whole reads and writes, with errors that name the file; new files that are complete when they
// appear; locks.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// openat() with O_CLOEXEC; the error names the path.
Result<UniqueFd> open_at(int dir, const std::string& path, int flags, unsigned mode = 0);

// What a symbolic link says. Empty, with errno, where it cannot be read, or is as long as no path can be.
std::string link_target(const std::string& path, int dir = AT_FDCWD);

// For files of the kernel and of our own. What others have made may be anything, of any size: that is for the functions
// below.
Result<std::string> read_all(int fd, std::string_view name);
Result<std::string> read_file(const std::string& path);

// Of the error where /proc is not there, or not that of this process. What is looked for in it then seems not to exist,
// and must not be taken for something that has ended, or was never made.
inline constexpr int kNoProc = ENOSYS;
Result<void> require_proc();

// Regular files only. Nothing else is opened at all: a FIFO would wait for its writer, a device may do whatever it
// does.
Result<UniqueFd> open_regular(int dir, const std::string& path, int flags = 0);
// What a file, a pipe or a socket still holds. More than `most` bytes are an error.
Result<std::string> read_at_most(int fd, std::string_view name, size_t most);
Result<std::string> read_regular(const std::string& path, size_t most);

// All of it, by as many calls as that takes.
Result<void> write_all(int fd, std::string_view bytes, std::string_view name);

// One write() call: what /proc, /sys and cgroup files ask for.
Result<void> write_once(int fd, std::string_view text, std::string_view name);
Result<void> write_file_at(int dir, const std::string& path, std::string_view text);

// The directory that a path ends in, and the last word of the path.
struct Parent {
    UniqueFd directory;  // O_PATH
    std::string name;
};
Result<Parent> open_parent(const std::string& path);

struct Pipe {
    UniqueFd from;
    UniqueFd to;
};

// Closed on exec. `purpose`, as in " for the input", is for the error.
Result<Pipe> make_pipe(std::string_view purpose);

// This process's descriptors as the host's /proc lists them. What was opened by O_PATH and looked at is opened for use
// through here, and no other file can take its place in between.
class OwnFds {
public:
    OwnFds() = default;  // by path, of a process that keeps its root
    // By the process itself, before it has another root.
    static Result<OwnFds> open();

    Result<UniqueFd> reopen(int fd, int flags) const;
    // For a file without a name; EEXIST where something has it already.
    Result<void> give_name(int fd, int directory, const std::string& name) const;

private:
    explicit OwnFds(UniqueFd directory) : directory_(std::move(directory)) {}
    std::string path_of(int fd) const;

    UniqueFd directory_;
};

// A file or link that has its name from the moment on that it is complete, and never before. What had the name until
// then is replaced, not followed.

// "directory", "fifo", ...
const char* file_kind(unsigned mode);

// Refused: directories and special files. Links and regular files are there to be replaced.
Result<void> check_replaceable(int directory, const std::string& name);

class NewFile {
public:
    // The mode is subject to the umask. The directory has to outlive the file. Where a file system has no files without
    // a name, it has one until then that nobody can foresee, or others who may write to the directory would take it.
    static Result<NewFile> create(int directory, unsigned mode);
    NewFile(NewFile&& other) noexcept = default;
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    NewFile& operator=(NewFile&&) = delete;
    ~NewFile();

    // Blocks of zeros become holes.
    Result<void> append(std::string_view bytes);
    Result<void> commit(const std::string& name, const OwnFds& own = {});
    // The same by renaming it, which is what those see who wait for a file of that name.
    Result<void> rename_to(const std::string& name, const OwnFds& own = {});
    // EEXIST where the name is taken.
    Result<void> commit_new(const std::string& name);

private:
    NewFile(int directory, UniqueFd fd, std::string name)
        : directory_(directory), fd_(std::move(fd)), name_(std::move(name)) {}
    Result<void> finish() const;

    int directory_;
    UniqueFd fd_;
    std::string name_;  // so far; empty: none
    uint64_t size_ = 0;
    uint64_t written_ = 0;  // up to here; the rest is a hole
};

// All of it in one call. replace_file: by renaming it. make_file: EEXIST where the name is taken.
Result<void> replace_file(int directory, const std::string& name, std::string_view text, unsigned mode);
Result<void> make_file(int directory, const std::string& name, std::string_view text, unsigned mode);

Result<void> make_link(int directory, const std::string& target, const std::string& name);

// Locks of open files, with a wait that ends.

inline constexpr std::chrono::seconds kLockPatience{10};

// flock(2) with LOCK_EX or LOCK_SH. Who does not get it in time fails with EWOULDBLOCK, and with words that name the
// holder and, as `name`, what is held.
Result<void> lock_file(int fd, int kind, std::string_view name, std::chrono::milliseconds patience = kLockPatience);

// A file in memory, to be written, sealed and executed. An error where the host forbids that (vm.memfd_noexec).
Result<UniqueFd> make_memory_program();
// From then on nobody can change it.
Result<void> seal(int file);
bool is_sealed(int file);

}  // namespace pinfold
