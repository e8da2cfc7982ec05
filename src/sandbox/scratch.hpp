// A work directory on a disk of the host's, of a fixed size: for jobs that write more than they may have in memory.
#pragma once

#include <cstdint>
#include <string>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "policy/policy.hpp"

namespace pinfold {

class Scratch {
public:
    // In a directory, or "disk" for the system's own. From here on this process has a mount namespace of its own.
    static Result<Scratch> open(const std::string& place, const Policies& policies);

    const UniqueFd& directory() const { return directory_; }

    // The root of an empty file system of that many bytes, which only this process has mounted. The file that it is in
    // has no name: it is gone with the last who has it mounted, however that ends.
    Result<UniqueFd> make(uint64_t size) const;

private:
    explicit Scratch(UniqueFd directory) : directory_(std::move(directory)) {}

    UniqueFd directory_;
};

}  // namespace pinfold
