// The rules for sysctl: only settings that belong to a namespace of the container; all others are the host's.
#include <algorithm>
#include <array>

#include "spec/rules.hpp"

namespace pinfold {

namespace {

struct SysctlOwner {
    std::string_view prefix;
    NamespaceType type;
    std::string_view what;  // with its article
};

constexpr auto kOwners = std::to_array<SysctlOwner>({{"net/", NamespaceType::network, "a network"},
                                                     {"kernel/msg", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/shm", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/sem", NamespaceType::ipc, "an ipc"},
                                                     {"fs/mqueue/", NamespaceType::ipc, "an ipc"},
                                                     {"kernel/domainname", NamespaceType::uts, "a uts"}});

// As sysctl(8) reads a name: its first separator says which of '.' and '/' is the separator, and the other one is a
// part of names ("net/ipv4/conf/eth0.1/forwarding").
std::string sysctl_file(std::string name) {
    const size_t separator = name.find_first_of("./");
    if (separator == name.npos || name[separator] == '/') return name;
    for (char& c : name) c = c == '.' ? '/' : c == '/' ? '.' : c;
    return name;
}

// Nothing that leaves /proc/sys or goes back up in it: "net/../kernel/core_pattern" is no setting of the network.
bool is_plain_path(std::string_view file) {
    const std::vector<std::string_view> components = split(file, '/');
    return std::none_of(components.begin(), components.end(),
                        [](std::string_view part) { return part.empty() || part == "." || part == ".."; });
}

std::string refusal(const std::string& file, const Linux& linux_) {
    if (!is_plain_path(file)) return "not the name of a setting";
    if (file == "kernel/hostname") return "to be set with the property hostname";
    const auto owner = std::find_if(kOwners.begin(), kOwners.end(),
                                    [&](const SysctlOwner& candidate) { return file.starts_with(candidate.prefix); });
    if (owner == kOwners.end()) return "belongs to no namespace: it would change the host";
    if (!find_namespace(linux_, owner->type)) {
        return concat("needs ", owner->what, " namespace: it would change the host");
    }
    return {};
}

}  // namespace

void validate_sysctl(const Linux& linux_, Problems& problems) {
    for (const auto& [name, value] : linux_.sysctl) {
        std::string message = refusal(sysctl_file(name), linux_);
        if (!message.empty()) problems.add(member_path("linux.sysctl", name), std::move(message));
    }
}

}  // namespace pinfold
