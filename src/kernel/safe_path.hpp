// RootFd: a directory that paths are resolved in as if it were "/". Whatever a container plants there
// (symlinks, renames during the walk), nothing outside of it is ever reached or made.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

class RootFd {
public:
    explicit RootFd(UniqueFd fd) : fd_(std::move(fd)) {}

    int get() const noexcept { return fd_.get(); }

    // Who makes what is missing where our own id can own nothing: on a mount whose id map does not have it.
    void make_as(uid_t uid, gid_t gid) { maker_ = Maker{uid, gid}; }

    // Symlinks are followed inside the root; magic links (/proc/*/fd) never.
    Result<UniqueFd> open(std::string_view path, int flags) const;
    // The same, for paths that must not contain any symlink at all.
    Result<UniqueFd> open_without_symlinks(std::string_view path, int flags) const;

    // O_PATH descriptors of what is there already, or was made now with all missing parents.
    Result<UniqueFd> make_directory(std::string_view path) const;
    Result<UniqueFd> make_file(std::string_view path) const;

    // The directory that holds the last component (made if missing), and that component's name. No link is followed:
    // what is made there must not lie in a directory of the host that is bound elsewhere in the container.
    struct Place {
        UniqueFd directory;
        std::string name;
    };
    Result<Place> place_of(std::string_view path) const;
    // Whether the descriptor is of the root itself.
    Result<bool> is_top(int fd) const;
    Result<UniqueFd> make_plain_file(std::string_view path) const;
    Result<UniqueFd> make_plain_directory(std::string_view path) const;

private:
    struct Maker {
        uid_t uid;
        gid_t gid;
    };

    Result<UniqueFd> make(std::string_view wanted, bool directory) const;
    Result<void> make_entry(int parent, const std::string& name, bool directory) const;
    Result<UniqueFd> make_plain(std::string_view path, bool directory) const;

    UniqueFd fd_;
    struct Identity {
        uint64_t mount;
        uint64_t inode;
    };
    mutable std::optional<Identity> identity_;  // asked for once
    static Result<Identity> identity_of(int fd);
    std::optional<Maker> maker_;
};

// Places by RootFd::place_of(). Those that follow each other in one directory have it by one descriptor.
class Neighbours {
public:
    // Until the next one is asked for. Always in the same root.
    Result<const RootFd::Place*> place_of(const RootFd& root, const std::string& path);

private:
    std::string directory_;
    std::optional<RootFd::Place> place_;
};

}  // namespace pinfold
