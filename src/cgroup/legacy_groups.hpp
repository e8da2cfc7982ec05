// A container's groups in the hierarchies of cgroup v1: one in each, all with the same path.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "cgroup/plan.hpp"
#include "cgroup/undo.hpp"
#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// The mounts, each once: one hierarchy may have several controllers.
std::set<std::string> legacy_mounts(const CgroupPlace& place);

// Those groups, opened. Which of them a control file is in follows from its name.
class LegacyGroups {
public:
    static Result<LegacyGroups> open(const CgroupPlace& place);

    int of(std::string_view file) const;  // -1: its controller is not mounted

private:
    std::map<std::string, UniqueFd, std::less<>> by_controller_;
};

// Makes the groups, with all those above them, and sets the limits. What is new is entered into `made`, also on
// failure. Groups that hold processes or are frozen are refused.
Result<void> make_legacy_groups(const CgroupPlan& plan, CgroupPlace& made);

Result<void> write_legacy_limits(const LegacyGroups& groups, std::vector<CgroupWrite> writes, Undo& undo);

}  // namespace pinfold
