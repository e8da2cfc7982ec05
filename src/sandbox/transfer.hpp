// Files for a job, and files from it: the host's side is opened, and checked by the policies, before anything starts.
#pragma once

#include <string>
#include <vector>

#include "files/copy.hpp"
#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "policy/policy.hpp"

namespace pinfold {

class Transfers {
public:
    static Result<Transfers> open(const SandboxJob& job, const Policies& policies);

    bool any_in() const { return !in_.empty(); }
    Result<void> copy_in(const InsideOf& sandbox) const;
    Result<void> copy_out(const InsideOf& sandbox) const;

private:
    // The host's side: a file or directory to be sent, or a directory to receive. `name` is what the copy is called
    // where it arrives.
    struct Transfer {
        UniqueFd host;
        std::string name;
        std::string inside;
        std::string label;  // for messages
    };

    std::vector<Transfer> in_;
    std::vector<Transfer> out_;
};

}  // namespace pinfold
