// Where an opened file is: by its name, by the directories above it, and by its place in its file system, which stays
// the same under whatever mount it is seen.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct Inode {
    dev_t device = 0;
    ino_t number = 0;  // 0: of no file
    bool operator==(const Inode&) const = default;
};

struct DevicePath {
    std::string device;  // "8:1"; empty: not known
    std::string path;    // from the file system's own root
};

struct MountEntry {
    int id = 0;
    DevicePath root;  // what of its file system is mounted
    std::string point;
    std::string type;
};

using MountTable = std::vector<MountEntry>;

Result<MountTable> read_mount_table();
MountTable parse_mount_table(std::string_view mountinfo);

struct HostPath {
    std::string path;
    Inode self;
    mode_t mode = 0;
    DevicePath place;
    std::string filesystem;     // its type; empty where the mount is not in our mount namespace
    std::vector<Inode> around;  // itself and, if asked for, every directory above it
};

// By its descriptor alone.
Result<HostPath> locate(int fd, const MountTable& mounts);
// With all directories above it.
Result<HostPath> locate_with_parents(int fd, const MountTable& mounts);

// Whether the path is the directory or lies below it; as text, so both have to be without links and dots.
bool is_within(std::string_view path, std::string_view directory);
bool is_within(const DevicePath& place, const DevicePath& directory);

// "/a" and "b" to "/a/b", with "/" as a directory like others.
std::string entry_path(std::string_view directory, std::string_view name);
// "/a//b/./../c/" as "/a/c", by the name alone.
std::string plain_path(std::string_view path);

}  // namespace pinfold
