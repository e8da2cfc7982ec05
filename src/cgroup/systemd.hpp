// A scope: a group in cgroup v2 that systemd makes, around a process, and removes once its last process has ended.
// systemd is asked through the program pinfold-scope, which alone links libsystemd.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cgroup/v2.hpp"

namespace pinfold {

// pinfold-scope belongs to this build.
bool has_scope_program();

struct ScopeName {
    std::string slice;  // "system.slice"
    std::string unit;   // "docker-web.scope"
};

// linux.cgroupsPath is "SLICE:PREFIX:NAME" here. An empty one stands for "DEFAULT:pinfold:ID", an empty slice for the
// default one, and without a prefix the name alone is the unit's. Pure.
Result<ScopeName> parse_scope_name(const std::string& cgroups_path, const std::string& id,
                                   const std::string& default_slice);

// Where systemd puts it, below the manager's own group: "/a.slice/a-b.slice/web.scope" for the slice "a-b.slice".
std::string scope_path(const ScopeName& name);

// The limits that systemd has a property for, each "NAME=VALUE" as pinfold-scope takes it: told them, systemd writes
// the same when it next writes these files at all. Pure.
std::vector<std::string> limit_properties(const std::vector<CgroupWrite>& writes);

// All that a new scope is started with, but for its process.
std::vector<std::string> scope_properties(const ScopeName& name, const std::string& id,
                                          const std::vector<CgroupWrite>& writes);

class SystemdScope : public V2Group {
public:
    using V2Group::V2Group;

    // Makes nothing yet, but says what would fail.
    Result<void> make(const CgroupPlan& plan, NewGroup& group) override;
    // Lets systemd start the scope around the process.
    Result<void> attach(const CgroupPlan& plan, pid_t pid, NewGroup& group) override;
    // Lets systemd move a process that this user may not move itself.
    Result<void> add_process(pid_t pid) override;

    Result<void> update_limits(const DividedResources& resources, Undo& undo, GroupLimits& written) override;

    Result<void> remove() override;
    Result<void> remove_empty() override;

protected:
    // A scope has all that systemd could give it already.
    Result<void> provide_controllers(const std::vector<CgroupWrite>& /*writes*/) override { return {}; }

private:
    Result<void> ask(const char* verb, const std::vector<std::string>& properties) const;
    Result<void> stop(const std::string& step) const;
    Result<void> refuse_frozen_slice() const;
    Result<void> check_path(pid_t pid) const;
};

}  // namespace pinfold
