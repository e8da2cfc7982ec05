// A container's groups in the hierarchies of cgroup v1: one in each, all with the same path.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cgroup/backend.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

// Descriptors of those groups. Which of them a control file is in follows from its name.
class V1GroupFds {
public:
    static Result<V1GroupFds> open(const CgroupPath& place);

    int of(std::string_view file) const;  // -1: its controller is not mounted

private:
    std::map<std::string, UniqueFd, std::less<>> by_controller_;
};

class V1Groups : public CgroupBackend {
public:
    using CgroupBackend::CgroupBackend;

    // Groups that hold processes or are frozen are refused.
    Result<void> make(const CgroupPlan& plan, NewGroup& group) override;
    Result<void> add_process(pid_t pid) override;

    Result<void> open() override;
    Result<void> update_limits(const DividedResources& resources, Undo& undo, GroupLimits& written) override;
    // Whoever is in the groups stands still meanwhile: between two writes, devices are denied that are allowed before
    // and after.
    Result<void> update_devices(const DividedResources& resources) override;

    bool is_frozen() override;
    Result<void> freeze(std::chrono::milliseconds patience) override;
    Result<void> thaw(std::chrono::milliseconds patience) override;
    void thaw_for_kill() override;

    Result<void> remove() override;
    Result<void> remove_empty() override;

private:
    class FreezeGuard;

    Result<void> make_groups(CgroupPath& made) const;
    Result<void> refuse_frozen() const;
    void kill_all(const Deadline& deadline);
    std::string name() const { return "cgroup v1, group " + place_.path; }

    V1GroupFds groups_;  // since open()
};

// Thaws the group and all below it, as far as possible: what the freezer of cgroup v1 holds dies of SIGKILL only then.
// Does nothing where the container is in no such freezer.
void thaw_v1_tree(const CgroupPath& place);

// How cgroup v1 tells that a group has run out of memory.
struct V1Oom {
    UniqueFd control;  // memory.oom_control, which counts the kills
    UniqueFd signal;   // readable when the kernel is about to kill, and when the group is removed
};
Result<V1Oom> watch_v1_oom(const CgroupPath& place);

}  // namespace pinfold
