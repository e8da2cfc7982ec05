// The gate: whatever a caller names on the command line, a file, a program, a verb, goes through it before anything
// else is done. main opens it once, and hands it to every verb.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "policy/policy.hpp"

namespace pinfold {

// What is done with a path that the caller has named.
enum class PathUse : uint8_t {
    read,        // a file to be read, or a directory to be looked into; links are followed
    source,      // the same, but a link as its last part is not followed
    entry,       // a file or directory to be made or replaced
    append,      // a file to be written to, made where there is none
    socket,      // to be connected to
    profile,     // the name of a seccomp profile, or a file
    state_root,  // the directory of the containers' states
};

class Gate {
public:
    // Loads the system's policy.
    static Result<Gate> open(const std::string& verb);
    // One more, of a file that the caller names; empty: none.
    Result<void> add(const std::string& policy);

    const Policies& policies() const { return policies_; }
    // Whether there is more than the built-in rules.
    bool has_policy() const { return policies_.size() > 1; }
    // Whether the caller has come by sudo(8) or the like, and is to be held to the policy in everything.
    bool binds_caller() const { return has_policy() && borrowed_; }

    Result<void> check_verb() const;

    // Refuses what the rules do not allow. What they allow is opened, and the name replaced by that descriptor's:
    // whoever opens it later gets the same file, wherever the caller's name leads by then.
    Result<void> admit(const std::string& option, PathUse use, std::string& path);

    // A text about the line, with the caller's own names.
    std::string in_callers_words(std::string text) const;

    // A file that the caller has named in another way than by an option. Nothing, where it may be opened by its name.
    Result<UniqueFd> open_to_read(const std::string& path) const;

private:
    Gate(std::string verb, bool borrowed) : verb_(std::move(verb)), borrowed_(borrowed), policies_(1) {}
    // Engines and root itself call some verbs with names of their own: see check_verb.
    bool governs() const;
    Result<void> admit_here(PathUse use, std::string& path);
    Result<void> admit_entry(std::string& path, Access access);
    Result<void> admit_append(std::string& path);
    Result<void> admit_profile(std::string& path);
    Result<void> admit_state_root(const std::string& path) const;
    void hold(UniqueFd fd, std::string_view rest, std::string& path);

    std::string verb_;
    bool borrowed_;
    Policies policies_;
    struct Held {
        UniqueFd fd;
        std::string name;     // what stands in the line now ...
        std::string callers;  // ... in the place of this
    };
    std::vector<Held> held_;  // until the program ends
};

// Whether this process has got its rights by sudo(8), doas(1), pkexec(1) or a bit of its file, not from who called it.
bool has_borrowed_rights();

// Who has called pinfold by sudo(8), as that tells. Only to root: anybody else could say so themselves.
std::optional<uid_t> sudo_caller();

}  // namespace pinfold
