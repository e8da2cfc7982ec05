// A file or link that has its name from the moment on that it is complete, and never before. What had the name until
// then is replaced, not followed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fs.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

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

}  // namespace pinfold
