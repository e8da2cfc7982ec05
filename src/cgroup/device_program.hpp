// Which devices a group may use: linux.resources.devices as an eBPF program, and its way into the kernel.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <span>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// The character devices that are always allowed: what the specification's default devices and terminals need.
struct StandardDevice {
    int32_t major;
    int32_t minor;  // -1: any
};
inline constexpr StandardDevice kStandardDevices[] = {
    {1, 3},     // null
    {1, 5},     // zero
    {1, 7},     // full
    {1, 8},     // random
    {1, 9},     // urandom
    {5, 0},     // tty
    {5, 1},     // console
    {5, 2},     // ptmx
    {136, -1},  // pts/*
};

// Each of read, write and mknod is decided by the last rule that speaks of it for that device; what no rule speaks
// of is denied. In front of all rules stand the standard devices and the making of nodes, which are always allowed.
std::vector<bpf_insn> device_program(std::span<const DeviceRule> rules);

// The program would deny nothing, so none is needed.
bool allows_every_device(std::span<const DeviceRule> rules);

// Adds to what is attached already: a device is usable if every program allows it.
Result<void> attach_device_program(int cgroup_fd, std::span<const bpf_insn> program);

// Puts it in the place of the one that pinfold attached to this group before, with no moment between the two; where
// there is none, it is added. Programs of others stay.
Result<void> replace_device_program(int cgroup_fd, std::span<const bpf_insn> program);

}  // namespace pinfold
