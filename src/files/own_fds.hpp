// OwnFds: this process's descriptors as the host's /proc lists them. What was opened by O_PATH and looked at is opened
// for use through here, and no other file can take its place in between.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

class OwnFds {
public:
    // By the process itself, before it has another root.
    static Result<OwnFds> open();

    Result<UniqueFd> reopen(int fd, int flags) const;
    // For a file without a name; EEXIST where something has it already.
    Result<void> give_name(int fd, int directory, const std::string& name) const;

private:
    explicit OwnFds(UniqueFd directory) : directory_(std::move(directory)) {}
    UniqueFd directory_;
};

}  // namespace pinfold
