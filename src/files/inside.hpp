// A process of ours that works in a container: as the payload's user, without capabilities, with the container's mounts
// and root as its own, and out of the container's sight. What the container's user controls is handled by it alone, so
// with no more rights than the container has: no link and no rename can lead it to anything that the container could
// not reach itself (CVE-2018-15664). It is a copy of this process and executes nothing (CVE-2019-14271).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "files/stream.hpp"
#include "kernel/credentials.hpp"
#include "kernel/safe_path.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "state/store.hpp"

namespace pinfold {

// What leads into a container. It does so for as long as it is held, also when the last process has ended: mounts, and
// with them files in memory, live as long as their namespace does. Of one that has ended before there are no
// namespaces, and its root is the directory of the host's that holds what is left of its files.
struct WayInside {
    UniqueFd root;
    UniqueFd mounts;          // the namespaces; none: it has ended
    UniqueFd user;            // none: it has none of its own
    bool set_groups = false;  // whether there are groups to be had in that
};

struct InsideOf {
    pid_t pid = 0;         // of the container's first process
    uint64_t started = 0;  // when that was, in clock ticks since boot: a pid alone may be reused
    bool user_namespace = false;
    Identity identity;                       // the payload's
    std::string cwd;                         // the payload's, where relative paths begin
    std::shared_ptr<const WayInside> way{};  // none: through the first process
};

Result<WayInside> open_way(const InsideOf& container);

InsideOf inside_of(const ContainerState& state, const Spec& spec);

// A failure of the work reaches the other end of the stream, where it is an error of receive().
using WorkInside = std::function<Result<void>(const RootFd& root, const OwnFds& own, const Stream& stream)>;

struct Helper {
    ChildGuard process;
    Stream stream;
};

Result<Helper> start_inside(const InsideOf& container, const WorkInside& work);

}  // namespace pinfold
