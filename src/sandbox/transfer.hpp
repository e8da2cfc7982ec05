// Files for a job, and files from it: the host's side is opened, and checked by the policies, before anything starts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "files/copy.hpp"
#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/spec.hpp"
#include "policy/policy.hpp"

namespace pinfold {

class Transfers {
public:
    static Result<Transfers> open(const SandboxJob& job, const Policies& policies);

    // What secrets are kept in, of this user's: with room for them, and for next to nothing else.
    std::optional<Mount> secrets_mount(const User& user) const;

    // Copies and secrets. They end once somebody asks for it.
    Result<void> copy_in(const InsideOf& sandbox, const CopySession& session = {}) const;
    // Each is tried, whatever became of those before it; but none once the time is over, or somebody asks for an end.
    std::vector<CopyFailure> copy_out(const InsideOf& sandbox, CopySession session = {}) const;

private:
    // The host's side: a file or directory to be sent, or a directory to receive. `name` is what the copy is called
    // where it arrives.
    struct Transfer {
        UniqueFd host;
        std::string name;
        std::string inside;
        std::string label;  // for messages
        FileCopy asked;
        bool is_new = false;  // the name is not that of a directory, so far
    };

    // Read when the sandbox's processes are there, so that none of them has ever had it in its memory.
    struct SecretFile {
        UniqueFd host;
        Secret asked;
        uint64_t size = 0;
    };

    Result<void> open_secrets(const SandboxJob& job, const Policies& policies);
    Result<void> write_secrets(const InsideOf& sandbox) const;

    Result<void> copy_one_out(const InsideOf& sandbox, const Transfer& one, CopySession& session,
                              std::vector<CopyFailure>& failures) const;

    std::vector<Transfer> in_;
    std::vector<Transfer> out_;
    std::vector<SecretFile> secrets_;
    CopyLimits limits_;  // of what comes out
};

}  // namespace pinfold
