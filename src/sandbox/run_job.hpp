// One job from its beginning to its end.
#pragma once

#include <functional>
#include <string>
#include <vector>

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
    Policies policies;      // all that hold here
    std::string audit;      // a log besides those that the policies name; empty: none
    Rewording words;        // for what is logged
    char** argv = nullptr;  // of a program that may be started again from a protected file
    int answer = -1;        // by which a process in between answers its caller; -1: there is none
    bool again = false;     // the job's sandbox is there, and has stopped
    bool bound = false;     // by a caller whom a policy binds (kBoundAnnotation)
    // Is told which ports are open once the program has been started; none: nobody is.
    std::function<void(const std::vector<PublishedPort>&)> on_published;
    Recorder* recorder = nullptr;  // of what the job does; its filter is then the recorder's
};

struct PreparedJob;
struct RunningContainer;

// Of a job that stays: what is to be done once it runs, or it does not stay. Its state and its group outlive it then.
using OnStay = std::function<Result<void>(RunningContainer& running)>;

Result<SandboxResult> run_prepared(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting,
                                   const OnStay& on_stay = {});

// Does not fail: a job that could not be set up is a result too, with nothing left of it.
SandboxResult run_job(const SandboxJob& wanted, const SandboxSetting& setting);

}  // namespace pinfold
