// From five numbers to a configuration: a config.json that any OCI runtime takes, for code that is not trusted.
#pragma once

#include <string>
#include <vector>

#include "pinfold/resource_limits.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// Host ids that stand for a sandbox's ids 0 to 65535. No account has them, so whatever gets out is nobody.
inline constexpr uint32_t kSandboxIds = 0x70000000;
inline constexpr uint32_t kSandboxIdCount = 65536;
inline constexpr uint32_t kSandboxUser = 1000;
inline constexpr const char* kWorkspace = "/workspace";

struct GenerateOptions {
    std::vector<std::string> args = {"sh"};
    std::vector<std::string> env;  // NAME=VALUE, over the few that every sandbox has
    std::string cwd = kWorkspace;
    User user = {kSandboxUser, kSandboxUser, {}, {}};
    std::vector<IdMapping> uid_mappings = {{0, kSandboxIds, kSandboxIdCount}};
    std::vector<IdMapping> gid_mappings = {{0, kSandboxIds, kSandboxIdCount}};
    std::string root = "rootfs";
    Seccomp seccomp;
};

// The same for the same input, on every machine.
Spec generate(const ResourceLimits& limits, const GenerateOptions& options);

// As config.json has it. For what generate() makes: hooks and other things that no sandbox has are not written.
std::string config_json(const Spec& spec);

}  // namespace pinfold
