// A seccomp profile as a file: linux.seccomp of the runtime specification, and why each rule is there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

struct RuleNote {
    std::string group;   // of calls, as a person would name it
    std::string reason;  // one sentence
};

struct Profile {
    std::string description;
    Seccomp seccomp;
    std::vector<RuleNote> notes;  // one per rule of seccomp; empty texts where the file has none
};

using FindProfile = std::function<Result<Profile>(const std::string& name)>;

// Where a profile lies, for errors: at is empty, or "linux.seccomp" in a config.json.
struct ProfilePlace {
    std::string file;
    std::string at;
};

// The document may extend another profile, which find_parent finds: what it says of a call replaces all that the parent
// says of that call, and what it does not say is the parent's. Checked by the rules for configs.
Result<Profile> parse_profile(Json document, const ProfilePlace& place, const FindProfile& find_parent);

// As a file of its own, with the reasons; spec/write_seccomp.hpp has it without.
Json to_json(const Profile& profile);

}  // namespace pinfold
