// A group in cgroup v2, made by files.
#pragma once

#include <string>
#include <vector>

#include "cgroup/backend.hpp"

namespace pinfold {

class V2Group : public CgroupBackend {
public:
    using CgroupBackend::CgroupBackend;

    Result<void> make(const CgroupPlan& plan, NewGroup& group) override;
    // Processes are cloned into the group.
    Result<void> add_process(pid_t /*pid*/) override { return {}; }

    Result<void> open() override;
    Result<void> update_limits(const DividedResources& resources, Undo& undo, GroupLimits& written) override;
    Result<void> update_devices(const DividedResources& resources) override;

    bool is_frozen() override;
    Result<void> freeze(std::chrono::milliseconds patience) override;
    Result<void> thaw(std::chrono::milliseconds patience) override;

    bool kill() override;
    Result<void> remove() override;
    Result<void> remove_empty() override;

protected:
    // Before anything is made: a host without the controller cannot have the limit, however the groups are arranged.
    // `mount` is a descriptor of the plan's mount.
    static Result<void> check_controllers(int mount, const CgroupPlan& plan);
    static Result<void> filter_devices(int group, const CgroupPlan& plan);
    // A payload in a frozen group would never run. `events` is the text of the group's cgroup.events.
    static Result<void> refuse_frozen(std::string_view events);
    // Gives the payload's user the group itself and the files that the kernel names as safe to delegate, never limits.
    static Result<void> delegate(int group, const std::optional<uid_t>& owner);
    // Brings the controllers that new limits need down to the group.
    virtual Result<void> provide_controllers(const std::vector<CgroupWrite>& writes);

    std::string directory() const { return place_.mount + place_.path; }
    std::string name() const { return "cgroup " + directory(); }

    UniqueFd fd_;  // since open()
};

// Out of a group that, itself or one above it, somebody other than root has rights over, as systemd gives each user
// over those of its session: by them this process could be frozen, killed or starved at a moment of their choice. It
// goes to the top, where nobody has. All other groups it stays in.
Result<void> leave_delegated_group();

}  // namespace pinfold
