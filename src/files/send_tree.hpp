// The sending side of a copy.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/fs.hpp"
#include "files/limits.hpp"
#include "files/stream.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// What an opened file or directory holds. Links below it are sent as links; special files are refused, and so is what
// exceeds the limits, before anything is sent. `path` names it in errors.
Result<CopySummary> send_tree(int top, const std::string& path, const CopyLimits& limits, const OwnFds& own,
                              const Stream& to);
// One of several, in a tree of them all: it may be a link itself. What it took of the budget is gone, also on failure.
Result<void> send_one_of(int top, const std::string& path, CopyBudget& budget, const OwnFds& own, const Stream& to);

// One file, from pieces that are no greater than Stream::kMaxBytes; the last one is empty.
using NextPiece = std::function<Result<std::string_view>()>;
Result<CopySummary> send_file(unsigned mode, const NextPiece& next, const CopyLimits& limits, const Stream& to);

// What a descriptor gives until its end. The buffer has to outlive the function.
NextPiece pieces_of(int fd, std::string& buffer);

}  // namespace pinfold
