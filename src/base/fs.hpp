// Files by descriptor: whole reads and writes, with errors that name the file.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// openat() with O_CLOEXEC; the error names the path.
Result<UniqueFd> open_at(int dir, const std::string& path, int flags, unsigned mode = 0);

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

}  // namespace pinfold
