// The id maps of a user namespace.
#include "kernel/id_maps.hpp"

#include <fcntl.h>
#include <signal.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "kernel/syscalls.hpp"

namespace pinfold {

namespace {

constexpr size_t kMapSize = 4096;  // user_namespaces(7): less than a page

Result<void> run_map_helper(const char* program, pid_t pid, const std::vector<IdRange>& ranges) {
    std::vector<std::string> words = {program, std::to_string(pid)};
    for (const IdRange& range : ranges) {
        for (const uint32_t number : {range.inside, range.outside, range.count})
            words.push_back(std::to_string(number));
    }
    Result<pid_t> helper = spawn(words);
    if (!helper) return std::move(helper).error().with_hint("install the package uidmap");
    if (reap(*helper) == 0) return {};
    return plain_error(concat(program, " refused the id map"))
        .with_hint("the ranges must be given to this user in /etc/subuid and /etc/subgid");
}

Result<void> write_map(int proc, const char* file, const std::vector<IdRange>& ranges) {
    const std::string lines = id_map_lines(ranges);
    if (lines.size() >= kMapSize) {
        return plain_error(concat(file, ": ", ranges.size(), " ranges take ", lines.size(), " bytes"))
            .with_hint(concat("the kernel takes less than ", kMapSize, ": merge ranges"));
    }
    Result<void> written = write_file_at(proc, file, lines);
    if (written || written.error().code != EPERM) return written;
    return std::move(written).error().with_hint(
        "only root, or newuidmap and newgidmap, can map ids other than one's own");
}

}  // namespace

std::string id_map_lines(const std::vector<IdRange>& ranges) {
    std::string lines;
    for (const IdRange& range : ranges) lines += concat(range.inside, " ", range.outside, " ", range.count, "\n");
    return lines;
}

Result<void> write_id_maps(pid_t pid, const IdMaps& maps) {
    if (maps.by_helper) {
        TRY(run_map_helper("newuidmap", pid, maps.uids));
        return run_map_helper("newgidmap", pid, maps.gids);
    }
    const UniqueFd proc = TRY(open_at(AT_FDCWD, concat("/proc/", pid), O_PATH | O_DIRECTORY));
    TRY(write_map(proc.get(), "uid_map", maps.uids));
    if (maps.deny_setgroups) TRY(write_file_at(proc.get(), "setgroups", "deny"));
    return write_map(proc.get(), "gid_map", maps.gids);
}

Result<UniqueFd> make_user_namespace(const IdMaps& maps) {
    clone_args arguments{};
    arguments.flags = CLONE_NEWUSER;
    arguments.exit_signal = SIGCHLD;
    const pid_t pid = sys_clone3(arguments);
    if (pid < 0) return errno_error("create a user namespace for an id-mapped mount");
    if (pid == 0) {
        for (;;) ::pause();  // holds the namespace until the guard below kills us
    }
    const ChildGuard guard(pid);
    TRY(write_id_maps(pid, maps));
    return open_at(AT_FDCWD, concat("/proc/", pid, "/ns/user"), O_RDONLY);
}

}  // namespace pinfold
