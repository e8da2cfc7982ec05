// A root that is made for one container and is gone with it: an empty file system in memory, filled from a list, or
// one that lies over a directory of the host and takes all changes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernel/container_mounts.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// What a root consists of besides its mounts. Paths are relative and plain; a directory comes before what it holds.
struct Skeleton {
    struct File {
        std::string path;
        std::string text;
    };
    std::vector<std::string> directories;
    std::vector<Link> links;
    std::vector<File> files;
};

struct MadeRoot {
    struct Owner {
        uint32_t uid = 0;
        uint32_t gid = 0;
    };
    uint64_t size = 0;  // bytes that can be written to it
    Skeleton skeleton;
    bool over_directory = false;  // RootRequest::path is what lies below; otherwise there is nothing
    std::optional<Owner> owner;   // of all that it is filled with; none: who makes it
    std::optional<IdMaps> below;  // of what lies below
};

Result<void> write_skeleton(int directory, const Skeleton& skeleton);

// In the container's own mount namespace. `below` is the tree of the directory, where there is one.
Result<UniqueFd> make_root(const MadeRoot& root, UniqueFd below);

}  // namespace pinfold
