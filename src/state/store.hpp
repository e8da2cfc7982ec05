// What pinfold remembers of a container: one directory per container below the state root. It is written before the
// first side effect, so that whatever dies at whatever point, `delete` finds and removes all of it.
#pragma once

#include <sys/types.h>

#include <string>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

struct ContainerRecord {
    std::string id;
    std::string oci_version;
    std::string bundle;
    std::string rootfs;
    std::string created;  // RFC 3339
    std::string cgroup_mount;
    std::string cgroup_path;  // empty: no group of its own
    uid_t owner = 0;
    StringMap annotations;
};

enum class Status : uint8_t { creating, running, stopped };
const char* status_name(Status status);

struct ContainerState {
    ContainerRecord record;
    Status status = Status::creating;
    pid_t pid = 0;  // 0 unless running
};

// Removes the directory unless commit() was called.
class StateDir {
public:
    // The directory is the claim to the id: making it fails if the id is taken.
    static Result<StateDir> create(const std::string& root, const ContainerRecord& record);
    StateDir(StateDir&& other) noexcept;
    StateDir(const StateDir&) = delete;
    StateDir& operator=(const StateDir&) = delete;
    StateDir& operator=(StateDir&&) = delete;
    ~StateDir();

    // The container's first process, with its start time: a pid alone may be reused.
    Result<void> record_init(pid_t pid) const;
    void commit() noexcept { owner_ = 0; }

private:
    StateDir(UniqueFd root, UniqueFd fd, std::string id);

    UniqueFd root_;
    UniqueFd fd_;
    std::string id_;
    pid_t owner_;  // a copy of this object in a forked child must not remove anything
};

Result<ContainerState> load_state(const std::string& root, const std::string& id);
Result<void> remove_state(const std::string& root, const std::string& id);

}  // namespace pinfold
