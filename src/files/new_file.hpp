// A file or link that has its name from the moment on that it is complete, and never before. What had the name until
// then is replaced, not followed.
#pragma once

#include <string>
#include <string_view>

#include "files/own_fds.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// "directory", "fifo", ...
const char* file_kind(unsigned mode);

// Refused: directories and special files. Links and regular files are there to be replaced.
Result<void> check_replaceable(int directory, const std::string& name);

class NewFile {
public:
    // The mode is subject to the umask. The directory has to outlive the file.
    static Result<NewFile> create(int directory, unsigned mode);
    NewFile(NewFile&& other) noexcept = default;
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    NewFile& operator=(NewFile&&) = delete;
    ~NewFile();

    // Blocks of zeros become holes.
    Result<void> append(std::string_view bytes);
    Result<void> commit(const OwnFds& own, const std::string& name);

private:
    NewFile(int directory, UniqueFd fd, std::string temporary)
        : directory_(directory), fd_(std::move(fd)), temporary_(std::move(temporary)) {}

    int directory_;
    UniqueFd fd_;
    std::string temporary_;  // its name so far; none where the file system can do without
    uint64_t size_ = 0;
};

Result<void> make_link(int directory, const std::string& target, const std::string& name);

}  // namespace pinfold
