// Limits as they were before they were changed.
#pragma once

#include <string>
#include <vector>

#include "cgroup/limits.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

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

}  // namespace pinfold
