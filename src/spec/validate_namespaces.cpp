// The rules for namespaces and what belongs to one: id mappings and clock offsets.
#include <bitset>

#include "spec/rules.hpp"

namespace pinfold {

namespace {

constexpr size_t kMostMappings = 340;        // user_namespaces(7)
constexpr uint64_t kIdsInAll = 0xffff'ffff;  // the last 32-bit number is no id
constexpr uint32_t kLastNanosecond = 999'999'999;

bool overlap(uint64_t first, uint64_t second, uint64_t first_size, uint64_t second_size) {
    return first < second + second_size && second < first + first_size;
}

void validate_id_mapping(const IdMapping& mapping, std::string_view at, Problems& problems) {
    if (mapping.size == 0) problems.add(member_path(at, "size"), expected_but_found(0, "1 or more"));
    for (const uint64_t first : {mapping.container_id, mapping.host_id}) {
        if (first + mapping.size > kIdsInAll) {
            problems.add(std::string(at), concat(mapping.size, " ids from ", first, " on go beyond the last id"));
        }
    }
}

void require_no_overlap(std::string_view path, const std::vector<IdMapping>& mappings, size_t index,
                        Problems& problems) {
    const IdMapping& later = mappings[index];
    for (size_t i = 0; i < index; ++i) {
        const IdMapping& earlier = mappings[i];
        const bool inside = overlap(earlier.container_id, later.container_id, earlier.size, later.size);
        const bool outside = overlap(earlier.host_id, later.host_id, earlier.size, later.size);
        if (inside || outside) {
            problems.add(element_path(path, index),
                         concat(inside ? "container" : "host", " ids overlap those of ", element_path(path, i)));
            return;
        }
    }
}

// A joined namespace has its mappings already; callers may repeat them.
void validate_user_namespace(std::string_view path, const std::vector<IdMapping>& mappings, const Namespace* user,
                             Problems& problems) {
    if (!user && !mappings.empty()) {
        problems.add(std::string(path), "needs a user namespace in linux.namespaces");
    } else if (user && user->path.empty() && mappings.empty()) {
        problems.add(std::string(path), "missing, required: at least one range for the new user namespace");
    }
    validate_id_mappings(path, mappings, problems);
}

void validate_time_offsets(const Linux& linux_, Problems& problems) {
    if (linux_.time_offsets.empty()) return;
    const Namespace* time = find_namespace(linux_, NamespaceType::time);
    if (!time || !time->path.empty()) {
        problems.add("linux.timeOffsets", "needs a new time namespace in linux.namespaces");
    }
    for (const auto& [clock, offset] : linux_.time_offsets) {
        const std::string at = member_path("linux.timeOffsets", clock);
        if (clock != "boottime" && clock != "monotonic") {
            problems.add(at, "no such clock, allowed: boottime, monotonic");
        }
        require_range(member_path(at, "nanosecs"), offset.nanosecs, 0, kLastNanosecond, problems);
    }
}

}  // namespace

void validate_id_mappings(std::string_view path, const std::vector<IdMapping>& mappings, Problems& problems) {
    if (mappings.size() > kMostMappings) {
        return problems.add(std::string(path),
                            concat("found ", mappings.size(), " ranges, allowed: at most ", kMostMappings));
    }
    for (size_t i = 0; i < mappings.size(); ++i) {
        validate_id_mapping(mappings[i], element_path(path, i), problems);
        require_no_overlap(path, mappings, i, problems);
    }
}

void validate_namespaces(const Linux& linux_, Problems& problems) {
    std::bitset<8> seen;
    const Namespace* user = find_namespace(linux_, NamespaceType::user);
    for (size_t i = 0; i < linux_.namespaces.size(); ++i) {
        const Namespace& ns = linux_.namespaces[i];
        const std::string at = element_path("linux.namespaces", i);
        const auto type = static_cast<size_t>(ns.type);
        // A type that could not be read is no namespace at all.
        if (problems.has(member_path(at, "type"))) continue;
        if (seen[type]) problems.add(member_path(at, "type"), "this type is given twice");
        seen.set(type);
        if (!ns.path.empty()) require_absolute(member_path(at, "path"), ns.path, problems);
        // Members of a new one have no rights over the pid namespace, and must not be seen there half made.
        if (ns.type == NamespaceType::pid && !ns.path.empty() && user != nullptr && user->path.empty())
            problems.add(member_path(at, "path"), "is joined with the user namespace that owns it, not with a new one");
    }
    validate_user_namespace("linux.uidMappings", linux_.uid_mappings, user, problems);
    validate_user_namespace("linux.gidMappings", linux_.gid_mappings, user, problems);
    validate_time_offsets(linux_, problems);
}

}  // namespace pinfold
