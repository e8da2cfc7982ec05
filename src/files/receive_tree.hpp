// The receiving side of a copy.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/fs.hpp"
#include "files/limits.hpp"
#include "files/stream.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Where the copy goes: a directory that is there, or a name in one, which may be there or not.
struct Place {
    UniqueFd directory;
    std::string name;              // empty: it is the directory itself that was named
    bool for_directories = false;  // the path ended with a slash
    bool makes_parents = false;    // a directory of that name is made for a file
};

// How paths are opened on the receiver's side.
using OpenPath = std::function<Result<UniqueFd>(const std::string& path, int flags)>;
Result<Place> find_place(const std::string& path, const OpenPath& open);
// The same where the directory that is to hold it is opened in another way.
Result<Place> find_place(const std::string& path, const OpenPath& open, const OpenPath& open_parent);

// In a directory that was named, the copy gets the source's own name; where that is empty, its content goes there.
Result<CopySummary> receive_tree(const Place& place, const std::string& source_name, const CopyLimits& limits,
                                 const OwnFds& own, const Stream& from, CopySession* session = nullptr);
// One of several, which may be a link itself, as send_one_of() sends it.
Result<void> receive_one_of(const Place& place, CopyBudget& budget, const OwnFds& own, const Stream& from,
                            CopySession& session);

// One regular file and nothing else.
using TakePiece = std::function<Result<void>(std::string_view)>;
Result<CopySummary> receive_file(const TakePiece& take, const CopyLimits& limits, const Stream& from);

// The last component: "b" of "/a/b/"; empty where there is none, as in "/" and "/a/..".
std::string last_name(std::string_view path);

}  // namespace pinfold
