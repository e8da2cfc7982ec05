// The rules for resource limits. Which limits the host can enforce is not known here.
#include "spec/rules.hpp"
#include "spec/validate.hpp"

namespace pinfold {

namespace {

void validate_rules(const std::vector<DeviceRule>& rules, std::string_view path, Problems& problems) {
    for (size_t i = 0; i < rules.size(); ++i) {
        const DeviceRule& rule = rules[i];
        const std::string at = element_path(path, i);
        if (rule.access.find_first_not_of("rwm") != std::string::npos) {
            problems.add(member_path(at, "access"), found(rule.access, "letters of rwm"));
        }
        if (rule.major && *rule.major < 0) problems.add(member_path(at, "major"), found(*rule.major, "0 or more"));
        if (rule.minor && *rule.minor < 0) problems.add(member_path(at, "minor"), found(*rule.minor, "0 or more"));
    }
}

void validate_cpu(const CpuLimits& cpu, std::string_view at, Problems& problems) {
    const int64_t quota = cpu.quota.value_or(0);
    if (quota > 0 && cpu.burst && *cpu.burst > static_cast<uint64_t>(quota)) {
        problems.add(member_path(at, "burst"), found(*cpu.burst, concat("at most the quota, ", quota)));
    }
    if (cpu.idle) require_range(member_path(at, "idle"), *cpu.idle, 0, 1, problems);
}

void validate_block_io(const BlockIoLimits& block_io, std::string_view at, Problems& problems) {
    const std::string path = member_path(at, "weightDevice");
    for (size_t i = 0; i < block_io.weight_device.size(); ++i) {
        const BlockIoDeviceWeight& device = block_io.weight_device[i];
        if (!device.weight && !device.leaf_weight) {
            problems.add(element_path(path, i), "missing, required: weight or leafWeight");
        }
    }
}

// 64KB, 2MB, 1GB
bool is_page_size(std::string_view text) {
    if (text.size() < 3 || !text.ends_with('B') || text[0] == '0') return false;
    const std::string_view unit = text.substr(text.size() - 2, 1);
    const std::string_view number = text.substr(0, text.size() - 2);
    return unit.find_first_of("KMG") == 0 && number.find_first_not_of("0123456789") == number.npos;
}

void validate_hugepages(const std::vector<HugepageLimit>& limits, std::string_view path, Problems& problems) {
    for (size_t i = 0; i < limits.size(); ++i) {
        if (is_page_size(limits[i].page_size)) continue;
        problems.add(member_path(element_path(path, i), "pageSize"),
                     found(limits[i].page_size, "a number and KB, MB or GB"));
    }
}

}  // namespace

void validate_resources(const Resources& resources, std::string_view at, Problems& problems) {
    validate_rules(resources.devices, member_path(at, "devices"), problems);
    if (resources.memory.swappiness) {
        require_range(member_path(member_path(at, "memory"), "swappiness"), *resources.memory.swappiness, 0, 100,
                      problems);
    }
    validate_cpu(resources.cpu, member_path(at, "cpu"), problems);
    validate_block_io(resources.block_io, member_path(at, "blockIO"), problems);
    validate_hugepages(resources.hugepage_limits, member_path(at, "hugepageLimits"), problems);
    for (const auto& [device, limit] : resources.rdma) {
        if (limit.hca_handles || limit.hca_objects) continue;
        problems.add(member_path(member_path(at, "rdma"), device), "missing, required: hcaHandles or hcaObjects");
    }
    for (const auto& [file, value] : resources.unified) {
        // It names a file of the container's own cgroup, never one elsewhere.
        if (!file.empty() && file != "." && file != ".." && file.find('/') == file.npos) continue;
        problems.add(member_path(member_path(at, "unified"), file), "not the name of a cgroup file");
    }
}

}  // namespace pinfold
