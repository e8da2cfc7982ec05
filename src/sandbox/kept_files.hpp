// Files of a sandbox that stays, on the host's disk, where they outlive its processes.
//
//     DIR/files/workspace, DIR/files/tmp    what /workspace and /tmp are inside
//     DIR/sandbox                           who has them; locked by who is about to take them
//
// The sandbox is shown the two directories and nothing above them. DIR is for its owner alone: whatever the sandbox
// leaves behind, no other user of the host gets there by a name.
#pragma once

#include <sys/types.h>

#include <string>

#include "files/inside.hpp"
#include "pinfold/generate.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "policy/policy.hpp"

namespace pinfold {

// Tells the directory that the files of a sandbox are kept in.
inline constexpr const char* kKeptAnnotation = "org.pinfold.kept-files";

// Whose the files are on the host. Root has ids to give: one that no account has, so that nothing that a sandbox leaves
// behind is root's. A normal user has one, and it is the sandbox's.
struct KeptOwner {
    uid_t uid = 0;
    gid_t gid = 0;
};
Result<KeptOwner> kept_owner();

// What is kept, by its places inside.
inline constexpr const char* kKeptPlaces[] = {kWorkspace, "/tmp"};

class KeptFiles {
public:
    // To be taken by one sandbox: what is missing is made, and who else wants them waits until this object, or its
    // record, says whose they are. Refused where the policies would refuse to bind the directory, where it is not the
    // caller's alone, holds something else, or is in use.
    static Result<KeptFiles> take(const std::string& directory, const Policies& policies, const KeptOwner& owner);
    // To be looked at by who copies.
    static Result<KeptFiles> find(const std::string& directory, const Policies& policies, const KeptOwner& owner);

    // Without links, for who comes later.
    const std::string& path() const { return path_; }
    // What is shown as "/workspace" or "/tmp".
    Result<UniqueFd> open_tree(const std::string& place) const;
    // What is in the place of a script, in the work directory, from a start before: the sandbox's first process makes
    // it anew, and in place of nothing.
    Result<void> forget_script(const std::string& name) const;
    // They were kept by the sandbox of that name, and by no other since.
    Result<void> require_name(const std::string& name) const;
    // From now on they are that sandbox's, for as long as its first process lives.
    Result<void> record(const std::string& name, pid_t sandbox_init) const;
    // A way to them for copies, with the rights of their owner and no others.
    Result<InsideOf> inside(std::string cwd) const;

private:
    KeptFiles(UniqueFd directory, std::string path, const KeptOwner& owner)
        : directory_(std::move(directory)), path_(std::move(path)), owner_(owner) {}

    static Result<KeptFiles> open(const std::string& directory, const Policies& policies, const KeptOwner& owner);
    Result<void> claim();
    Result<void> make_trees();
    Result<void> open_files();

    UniqueFd directory_;
    std::string path_;
    KeptOwner owner_;
    UniqueFd record_;
    UniqueFd files_;
};

// The files of a container for who copies: all of one that has a first process; of a sandbox that has stopped, those
// that are kept. `path` is what is asked for.
Result<InsideOf> files_of(const std::string& state_root, const std::string& id, const std::string& path,
                          const Policies& policies);

}  // namespace pinfold
