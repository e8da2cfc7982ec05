// Which devices a group may use: linux.resources.devices as an eBPF program, and its way into the kernel.
#pragma once

#include <linux/bpf.h>

#include <span>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

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
