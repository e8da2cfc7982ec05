// Namespaces: which to create, which to join, and the little that has to be set up inside new ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernel/syscalls.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

struct NamespaceToJoin {
    uint64_t flag = 0;  // CLONE_NEW*
    std::string path;
};

struct ClockOffset {
    int64_t seconds = 0;
    uint32_t nanoseconds = 0;
};

// "network" for CLONE_NEWNET: the specification's word.
const char* namespace_name(uint64_t flag);

// Opened and checked to be of the right kind; the order of joining is join_namespaces' business.
struct OpenedNamespace {
    uint64_t flag = 0;
    std::string path;
    UniqueFd fd;
};
Result<std::vector<OpenedNamespace>> open_namespaces(std::span<const NamespaceToJoin> wanted);

// Those that the caller's own rights reach first, then the user namespace, then the ones that belong to it.
Result<void> join_namespaces(const std::vector<OpenedNamespace>& namespaces);

// A process must not join the user namespace that it is in already: the kernel answers EINVAL.
bool is_own_user_namespace(int fd);

// Creates a time namespace for the caller's future children and shifts its clocks, which is only possible
// before the first of them exists. Keys: "monotonic", "boottime".
Result<void> create_time_namespace(const std::map<std::string, ClockOffset>& offsets);

// With what is known to help.
Error namespace_error(int code, const char* call);

Result<void> bring_loopback_up();

// A new network namespace, its loopback up, made by a thread of its own: it takes the kernel longer than all others
// together, and much of a start can be done meanwhile.
class NetworkAhead {
public:
    static constexpr bool is_possible() { return kHasRawCalls; }
    static Result<NetworkAhead> begin();

    NetworkAhead(NetworkAhead&&) noexcept;
    NetworkAhead& operator=(NetworkAhead&&) = delete;
    NetworkAhead(const NetworkAhead&) = delete;
    NetworkAhead& operator=(const NetworkAhead&) = delete;
    ~NetworkAhead();

    // Waits until it is made.
    Result<UniqueFd> take();

private:
    struct Work;
    explicit NetworkAhead(std::unique_ptr<Work> work);

    std::unique_ptr<Work> work_;
};

// Root elsewhere is root over the namespace only, not over the host: that is how engines for normal users call us.
Result<bool> in_initial_user_namespace();

// Whether the root of this process's user namespace is the host's own, as it is for root by unshare -Ur: who has its id
// owns the host's files, whatever rights it lacks. True where it cannot be told.
bool is_hosts_root();

// Whether this process's mount namespace was made in its user namespace: only then can it mount anything here.
bool owns_mount_namespace();

}  // namespace pinfold
