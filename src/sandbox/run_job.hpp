// One job from its beginning to its end.
#pragma once

#include <string>

#include "audit/log.hpp"
#include "cgroup/plan.hpp"
#include "pinfold/sandbox.hpp"
#include "policy/policy.hpp"
#include "seccomp/recorder.hpp"

namespace pinfold {

// What does not belong to the job itself, but to where it is run.
struct SandboxSetting {
    std::string state_root;
    CgroupManager cgroup_manager = CgroupManager::cgroupfs;
    Policies policies;             // all that hold here
    std::string audit;             // a log besides those that the policies name; empty: none
    Rewording words;               // for what is logged
    char** argv = nullptr;         // of a program that may be started again from a protected file
    Recorder* recorder = nullptr;  // of what the job does; its filter is then the recorder's
};

// Does not fail: a job that could not be set up is a result too, with nothing left of it.
SandboxResult run_job(const SandboxJob& wanted, const SandboxSetting& setting);

}  // namespace pinfold
