// The five capability sets, as bit masks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct CapabilitySets {
    uint64_t bounding = 0;
    uint64_t effective = 0;
    uint64_t permitted = 0;
    uint64_t inheritable = 0;
    uint64_t ambient = 0;
};

// The bit of "CAP_CHOWN", or nothing for a name that neither libcap nor this kernel knows.
std::optional<uint64_t> capability_bit(const std::string& name);

// The names of all that libcap knows, "CAP_CHOWN" first; this kernel may know fewer.
std::vector<std::string> capability_names();

// What the caller itself may pass on.
Result<uint64_t> own_permitted_capabilities();

// Of another process; 0: the caller.
Result<uint64_t> permitted_capabilities(pid_t pid);
// What it, and whatever it starts, may ever have.
Result<uint64_t> bounding_capabilities(pid_t pid);

// These, out of all sets but the bounding one.
Result<void> drop_capabilities(uint64_t dropped);

// Bounding comes first, while CAP_SETPCAP is still there; the rest last, after the change of user.
Result<void> drop_bounding_set(uint64_t keep);
Result<void> apply_capabilities(const CapabilitySets& sets);

// After the change of user the effective set is empty, though the permitted one was kept: make it usable.
Result<void> raise_permitted_capabilities();

// For as long as it lives, no capability of this thread is in effect: for what is done on behalf of a container.
class SetAsideCapabilities {
public:
    SetAsideCapabilities();
    ~SetAsideCapabilities();
    SetAsideCapabilities(const SetAsideCapabilities&) = delete;
    SetAsideCapabilities& operator=(const SetAsideCapabilities&) = delete;

    // False: they are all in effect still.
    explicit operator bool() const { return done_; }

private:
    uint64_t effective_ = 0;
    uint64_t permitted_ = 0;
    uint64_t inheritable_ = 0;
    bool done_ = false;
};

}  // namespace pinfold
