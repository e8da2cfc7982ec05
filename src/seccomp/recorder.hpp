// Learns a profile from the calls that a program makes. What it learns are rules of the profiles that come with
// pinfold, with their conditions and reasons, each for the calls that needed it; what none of those allows is not
// learned.
#pragma once

#include <linux/seccomp.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "pinfold/spec.hpp"
#include "seccomp/profile.hpp"

namespace pinfold {

class Recorder {
public:
    Recorder();

    // For the kernel, while it is recorded: what some profile of pinfold allows goes on, and a tracer is told of it;
    // but for what every program does many times a second. All else is denied.
    const Seccomp& watched() const { return watched_; }

    // For the tracer: a call that it was told of. Only its numbers are looked at, never memory that they point to.
    void record(const seccomp_data& call);

    // A profile for all that was recorded and for what the tracer is not told of. With an earlier one: that
    // profile, and what it lacks. A call that it denies stays denied.
    Profile learned(const std::string& description, const std::optional<Profile>& earlier) const;

private:
    // A rule for one call, with no more than one way to fulfil its conditions.
    struct CallRule {
        SyscallRule rule;
        RuleNote note;
    };

    const CallRule* find_fitting(const std::string& name, const seccomp_data& call) const;
    void watch();
    void remember(const std::string& call, const CallRule& needed);

    std::map<std::string, std::vector<CallRule>, std::less<>>
        known_;                                // by call, from the narrowest profile to the widest
    std::set<std::pair<uint32_t, int>> free_;  // architecture and number of those whose arguments do not matter
    std::map<std::pair<std::string, std::string>, CallRule> needed_;  // by call and conditions in words
    Seccomp watched_;
    bool foreign_ = false;  // a call of another architecture was seen
};

}  // namespace pinfold
