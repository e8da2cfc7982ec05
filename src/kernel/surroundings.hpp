// What around pinfold can forbid a start: the container, the security module or the kernel that it was called in. It is
// looked at only when a start has failed, to say why and what helps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct Surroundings {
    enum class Engine : uint8_t { none, docker, podman, kubernetes };

    Engine engine = Engine::none;             // of the container around
    bool is_privileged = false;               // root, with CAP_SYS_ADMIN, in the first user namespace
    bool is_filtered = false;                 // by somebody else's seccomp filter
    bool is_gvisor = false;                   // a kernel that is a program
    bool apparmor_restricts = false;          // user namespaces, of programs without a profile
    bool apparmor_confines = false;           // this process has a profile that is enforced
    bool clone_is_switched_off = false;       // Debian's switch for user namespaces
    std::optional<uint64_t> user_namespaces;  // the most that there may be
    std::vector<std::string> masks;           // what is mounted below /proc
    std::string kernel;                       // its release
};

// Reads below `root`, which is the host's but in tests.
Surroundings look_around(const std::string& root = "");

// Adds the cause, and what to do about it, where the surroundings explain the failure.
Error explain_start(Error error, const Surroundings& around);

}  // namespace pinfold
