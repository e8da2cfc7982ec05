// --pid-file: digits only, complete from the moment it exists, and gone if the start fails after all.
#pragma once

#include <sys/types.h>

#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

class PidFile {
public:
    // An empty path writes nothing.
    static Result<PidFile> write(const std::string& path, pid_t pid);
    PidFile(PidFile&& other) noexcept;
    PidFile(const PidFile&) = delete;
    PidFile& operator=(const PidFile&) = delete;
    PidFile& operator=(PidFile&&) = delete;
    ~PidFile();

    void commit() noexcept { path_.clear(); }

private:
    explicit PidFile(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

}  // namespace pinfold
