// Limits in the control files of a group: setting one, taking it back, and reading whether the kernel has it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// Sets a limit, or finds that it is met without its file. The error names the property, and what would help where that
// is known.
Result<void> write_limit(int group, const CgroupWrite& write);

// Changes limits, and puts the old ones back, the latest first, unless commit() was called. The groups' descriptors
// must live longer.
class Undo {
public:
    Undo() = default;
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo();

    // Sets a limit, as write_limit() does, and remembers what was there.
    Result<void> set(int group, const CgroupWrite& write);
    void commit() { old_.clear(); }

private:
    struct Old {
        int group;
        std::string file;
        std::string value;
    };

    void remember(int group, const std::string& file, const std::string& value);

    std::vector<Old> old_;
};

struct LimitFound {
    std::string file;
    std::string planned;
    std::string found;
    bool holds;
};

// Reads a limit of the group with this directory. Nothing for files that can only be written to, and for limits that
// are met without their file.
std::optional<LimitFound> read_limit(const std::string& directory, const CgroupWrite& write);

// Leaves out the writes whose effect a later one replaces.
std::vector<CgroupWrite> lasting_writes(const std::vector<CgroupWrite>& writes);

// Whether a control file that was written `planned` to and says `found` now has taken it. The kernel rounds numbers,
// and adds lines of its own.
bool has_taken(std::string_view file, std::string_view planned, std::string_view found);

}  // namespace pinfold
