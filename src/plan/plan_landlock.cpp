// Landlock's rules, from annotations and from what the config says of mounts.
#include <algorithm>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "plan/plan.hpp"

namespace pinfold {

namespace {

const std::string* annotation(const Spec& spec, const char* name) {
    const auto found = spec.annotations.find(name);
    return found == spec.annotations.end() ? nullptr : &found->second;
}

bool has_option(const Mount& mount, std::string_view option) {
    return std::ranges::find(mount.options, option) != mount.options.end();
}

// What the kernel shows of itself is to be read.
bool is_writable(const Mount& mount) {
    if (mount.type == "proc" || mount.type == "sysfs") return false;
    return !has_option(mount, "ro") && !has_option(mount, "rro");
}

bool has_own_network(const Linux& config) {
    return std::ranges::any_of(config.namespaces,
                               [](const Namespace& one) { return one.type == NamespaceType::network; });
}

Result<LandlockRules::Ports> plan_ports(const Spec& spec, const char* name, int abi) {
    const std::string* text = annotation(spec, name);
    if (text == nullptr) return LandlockRules::Ports();
    const std::optional<LandlockRules::Ports> ports = parse_ports(*text);
    const std::string place = concat("annotations.", name);
    if (!ports)
        return plain_error(concat(place, ": ", quoted(*text), " is no list of ports; expected any, none or 80,443"));
    if (*ports && abi < kLandlockTcp) {
        return plain_error(concat(place, ": this kernel cannot hold a process to ports"))
            .with_hint("Landlock does from Linux 6.7 on; drop the list, or use a network namespace");
    }
    return *ports;
}

// A network namespace hides both; without one, the rules are what keeps the host's out of reach.
void tell_of_gaps(int abi) {
    if (abi >= kLandlockScopes) return;
    log_warning(concat("this kernel's Landlock (version ", abi, ") does not rule on ",
                       abi < kLandlockTcp ? "TCP ports and " : "", "abstract sockets: the host's are within reach"));
}

}  // namespace

std::optional<LandlockRules::Ports> parse_ports(std::string_view text) {
    if (text == "any") return LandlockRules::Ports();
    std::vector<uint16_t> ports;
    if (text == "none") return ports;
    for (const std::string_view word : split(text, ',')) {
        const std::optional<uint16_t> port = parse_number<uint16_t>(word);
        if (!port) return std::nullopt;
        ports.push_back(*port);
    }
    return ports;
}

Result<std::optional<LandlockRules>> plan_landlock(const Spec& spec) {
    const std::string* wish = annotation(spec, kLandlockAnnotation);
    if (wish == nullptr || *wish != "true") return std::optional<LandlockRules>();
    LandlockRules rules{.abi = landlock_abi()};
    rules.tcp_bind = TRY(plan_ports(spec, kTcpBindAnnotation, rules.abi));
    rules.tcp_connect = TRY(plan_ports(spec, kTcpConnectAnnotation, rules.abi));
    if (rules.abi == 0) {
        log_warning("Landlock is not in this kernel, or is switched off (lsm= on its command line): one layer less");
        return std::optional<LandlockRules>();
    }
    rules.places.push_back({"/", !spec.root.readonly});
    for (const Mount& mount : spec.mounts) {
        if (is_writable(mount)) rules.places.push_back({mount.destination, true});
    }
    if (!has_own_network(spec.linux_)) {
        tell_of_gaps(rules.abi);
        rules.own_abstract_sockets = rules.abi >= kLandlockScopes;
    }
    return std::optional(std::move(rules));
}

}  // namespace pinfold
