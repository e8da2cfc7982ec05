// Copies between the host and a container that has a first process: created, running or paused. The container's side is
// worked on by a process that has the payload's user and no more rights (inside.hpp), the host's by the caller.
//
// Paths in the container: links are followed, in its root. Paths on the host: a link as the last component is refused,
// since the container may have planted it where it can write; a slash after it says that it is meant.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "files/inside.hpp"
#include "files/limits.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// A file or a tree. Into a target that is a directory it goes under its own name; where the source ends with "/.", only
// its content does. Else the target is its new name, and a file that has it is replaced.
Result<CopySummary> copy_in(const InsideOf& container, const std::string& host_source, const std::string& inside,
                            const CopyLimits& limits);
Result<CopySummary> copy_out(const InsideOf& container, const std::string& inside, const std::string& host_target,
                             const CopyLimits& limits);

// The same with a host's side that was opened before: a file or directory, its path for errors and its name for the
// target, whose missing parents are made ...
struct OpenedSource {
    int fd;
    std::string path;
    std::string name;
};
Result<CopySummary> copy_in(const InsideOf& container, const OpenedSource& source, const std::string& inside,
                            const CopyLimits& limits, const CopySession& session = {});
// ... and a directory, in which the copy gets this name. If it has a directory of that name, a tree is merged into
// that. With a slash behind it, it is that of a directory, into which a file goes.
Result<CopySummary> copy_out(const InsideOf& container, const std::string& inside, int host_directory,
                             const std::string& name, const CopyLimits& limits, CopySession* session = nullptr);

// All that a pattern stands for (matches.hpp), each under its own name; a link stays one. Together they are one copy,
// as far as its limits go.
struct MatchTarget {
    std::function<Result<UniqueFd>()> open;  // the host's directory, which is asked for once there is a match
    std::function<void(const std::string& path, const Error& error)> failed;  // of one of them: the others go on
};
// How many there were. Also an error after too many failures, when not all were tried.
Result<uint64_t> copy_matches_out(const InsideOf& container, const std::string& pattern, const MatchTarget& target,
                                  const CopyLimits& limits, CopySession& session);

// One regular file from a descriptor to its end, and to a descriptor.
Result<CopySummary> stream_in(const InsideOf& container, int from, const std::string& inside, const CopyLimits& limits);
Result<CopySummary> stream_out(const InsideOf& container, const std::string& inside, int to, const CopyLimits& limits);

// Whether there is such a directory, or such a one can be made, with its parents.
Result<void> find_directory(const InsideOf& container, const std::string& inside, bool make);

// The same in memory.
Result<std::string> read_inside(const InsideOf& container, const std::string& inside, uint64_t max);
Result<void> write_inside(const InsideOf& container, const std::string& inside, std::string_view bytes, unsigned mode);

}  // namespace pinfold
