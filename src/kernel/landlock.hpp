// Landlock: rules on files and ports that a process lays on itself and on all that comes after it. One more layer: it
// holds where a mount's flag, an owner or a mode would fail to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct LandlockRules {
    struct Place {
        std::string path;  // and all below it
        bool writable = false;
    };
    using Ports = std::optional<std::vector<uint16_t>>;  // nothing: any

    int abi = 0;                // of the kernel; it decides on what can be ruled
    std::vector<Place> places;  // nothing else can be opened
    Ports tcp_bind;
    Ports tcp_connect;
    bool own_abstract_sockets = false;  // no others can be connected to
};

// The version of the kernel's rules; 0 where it has none, or where they are switched off.
int landlock_abi();

// The first versions that rule on these.
inline constexpr int kLandlockTcp = 4;
inline constexpr int kLandlockScopes = 6;

// For this process and its future. What it has open already stays usable, and its first `streams` descriptors can be
// opened again. Takes no_new_privs.
Result<void> enter_landlock(const LandlockRules& rules, unsigned streams);

}  // namespace pinfold
