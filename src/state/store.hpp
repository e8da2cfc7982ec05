// What pinfold remembers of a container: one directory per container below the state root. It is written before the
// first side effect, so that whatever dies at whatever point, `delete` finds and removes all of it.
//
//     state.json    the record; the first file that is there
//     config.json   the container's configuration, as it was when it was created
//     init          pid and start time of its first process
//     start.new     a socket while it is created ...
//     start         ... whose name changes when that is done; it is gone once the container has been started
//
// and of a sandbox that stays (sandbox/monitor.hpp):
//
//     output        what its command prints; locked by who writes it
//     result        how it ended; locked until that is known
//     stop          there if it was told to stop
//     job           what it was started with, where its files are kept (sandbox/job_file.hpp)
//
// The directory itself carries the lock of those who change the container.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cgroup/path.hpp"
#include "cgroup/plan.hpp"
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
    CgroupPath cgroup;
    // What was planned, and what `update` has changed since; nothing in the states of earlier versions.
    std::optional<GroupLimits> limits{};
    uid_t owner = 0;
    // Whether config.json has hooks for these moments; most have none, and then it need not be read again.
    bool poststart_hooks = false;
    bool poststop_hooks = false;
    // Whether its first process waits once it is started, for its listener and to be looked at.
    bool listens = false;
    bool pauses = false;
    StringMap annotations;
};

enum class Status : uint8_t { creating, created, running, paused, stopped };
const char* status_name(Status status);

struct ContainerState {
    ContainerRecord record;
    Status status = Status::creating;
    pid_t pid = 0;         // 0: its first process does not live
    uint64_t started = 0;  // when that process did, in clock ticks since boot
    bool had_init = false;
    bool has_record = false;  // without one, nothing was done for it yet, or nothing is left but its directory
};

// Where states are kept unless the caller says otherwise: a normal user's are in its runtime directory, or in a
// directory of its own in /tmp. A state directory that others could change is refused wherever it is opened.
std::string default_state_root();

// Removes the directory unless commit() was called, and holds its lock.
class StateDir {
public:
    // The directory is the claim to the id: making it fails if the id is taken.
    static Result<StateDir> create(const std::string& root, const ContainerRecord& record, std::string_view config);
    // Of a container that has stopped and is to be started anew. Its directory stays, whatever comes of that; what is
    // left of its group goes.
    static Result<StateDir> reopen(const std::string& root, const ContainerRecord& record, std::string_view config);
    StateDir(StateDir&& other) noexcept;
    StateDir(const StateDir&) = delete;
    StateDir& operator=(const StateDir&) = delete;
    StateDir& operator=(StateDir&&) = delete;
    ~StateDir();

    // The container's first process, with its start time: a pid alone may be reused.
    Result<void> record_init(pid_t pid) const;
    // Where a created container's first process waits for `start`, listening.
    Result<UniqueFd> make_start_socket() const;
    Result<void> mark_created() const;
    // A file in it, in place of one that has the name.
    Result<void> write_file(const char* name, std::string_view text) const;
    // A new file in it, locked (flock) for as long as it is held.
    Result<UniqueFd> make_locked_file(const char* name) const;
    // What a sandbox that stays has printed, and how it ended, when it ran before. Not before it runs again: a start
    // that fails leaves both.
    Result<void> forget_last_end() const;
    // The directory itself, for who outlives this object.
    Result<UniqueFd> hold() const;
    void unlock() const;
    void commit() noexcept { owner_ = 0; }

private:
    StateDir(UniqueFd root, UniqueFd fd, std::string id);

    UniqueFd root_;
    UniqueFd fd_;
    std::string id_;
    pid_t owner_;  // a copy of this object in a forked child must not remove anything
};

// Keeps others from changing the container meanwhile. Waits for one that does, but not for ever.
class StateLock {
public:
    static Result<StateLock> take(const std::string& root, const std::string& id);

    // The directory, for who has to do with it later, too, when another container may have the name.
    Result<UniqueFd> hold() const;

private:
    explicit StateLock(UniqueFd dir) : dir_(std::move(dir)) {}
    UniqueFd dir_;
};

// Of the error where there is no container of that name.
inline constexpr int kNoSuchContainer = ESRCH;

// While another pinfold is removing it, a container does not exist.
Result<ContainerState> load_state(const std::string& root, const std::string& id);
// For who has locked it to remove it: also what one has left who died at that, and, if that is wanted, without its
// record where that cannot be read.
Result<ContainerState> load_for_delete(const std::string& root, const std::string& id, bool unreadable_too);
// For who has locked it.
Result<void> replace_record(const std::string& root, const ContainerRecord& record);
Result<std::string> load_config_text(const std::string& root, const std::string& id);

// A file in a container's directory; ENOENT where there is none. Flags as open(2) has them.
Result<UniqueFd> open_state_file(const std::string& root, const std::string& id, const char* name, int flags);
Result<UniqueFd> open_state_file(int directory, const char* name, int flags);

// All that are there, by id. One that cannot be read is warned about and left out.
Result<std::vector<ContainerState>> load_all_states(const std::string& root);

// Connected to the first process of a created container; and the end of that.
Result<UniqueFd> connect_to_start(const std::string& root, const std::string& id);
Result<void> forget_start_socket(const std::string& root, const std::string& id);

// Of one that is creating: whether nobody is at it any more. Its creator holds its lock as long as it lives.
bool is_abandoned(const std::string& root, const ContainerState& state);

// Makes it, if it is not there, and refuses it if others could change it: for who uses what else it holds.
Result<void> require_state_root(const std::string& root);

// A turn in which nobody else counts or adds containers, until the descriptor is closed.
Result<UniqueFd> take_turn(const std::string& root);

// When a container was last used, for those who remove what nobody uses: in seconds that no change of the time of day
// touches.
void mark_use(const std::string& root, const std::string& id);
int64_t seconds_since_use(const std::string& root, const std::string& id);

// Since an entry was made in its directory or removed, by the time of day.
int64_t seconds_since_change(const std::string& root, const std::string& id);

Result<void> remove_state(const std::string& root, const std::string& id);

// A container's id, its record's form on disk, and the state that `pinfold state` prints.

// A name of directories and cgroups, so only harmless characters.
Result<void> check_container_id(const std::string& id);

// In pieces, since its annotations may be long.
void write_record(const ContainerRecord& record, const std::function<void(std::string_view)>& put);
std::string record_to_json(const ContainerRecord& record);
Result<ContainerRecord> record_from_json(std::string_view text);

// As the specification wants it, plus what callers of runc know: rootfs, created, owner.
// Members that others know of follow: the name and the JSON of each.
using MoreMembers = std::vector<std::pair<std::string, std::string>>;
std::string state_to_json(const ContainerState& state, const MoreMembers& more = {});
// The same without line breaks.
std::string state_to_json_line(const ContainerState& state, const MoreMembers& more = {});

}  // namespace pinfold
