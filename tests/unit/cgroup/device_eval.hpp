// Runs a device program in userland, so that its verdicts are tested without root and without devices.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <string>

namespace pinfold::testing {

struct DeviceRequest {
    char type = 'c';
    uint32_t major = 0;
    uint32_t minor = 0;
    std::string access;  // of r, w, m
};

// What the program answers; throws where it does something that a device program has no reason to do.
bool device_allowed(std::span<const bpf_insn> program, const DeviceRequest& request);

}  // namespace pinfold::testing
