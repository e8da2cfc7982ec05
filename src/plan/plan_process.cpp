// The payload's own part: user, capabilities, limits, scheduling, Landlock's rules.
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/personality.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "plan/plan.hpp"

namespace pinfold {

namespace {

template <class Value>
struct Named {
    std::string_view name;
    Value value;
};

// The config has been validated: a name that is not in the table means nothing to this kernel's headers.
template <class Value, size_t Size>
Value look_up(const Named<Value> (&table)[Size], std::string_view name) {
    for (const Named<Value>& entry : table) {
        if (entry.name == name) return entry.value;
    }
    return Value{};
}

uint64_t capability_mask(const std::vector<std::string>& names, uint64_t available) {
    uint64_t mask = 0;
    for (const std::string& name : names) mask |= capability_bit(name).value_or(0) & available;
    return mask;
}

// Once, whatever sets it is in.
void tell_left_out(const Capabilities& sets, uint64_t available) {
    std::set<std::string> names;
    for (const auto* set : {&sets.bounding, &sets.permitted, &sets.effective, &sets.inheritable, &sets.ambient})
        names.insert(set->begin(), set->end());
    for (const std::string& name : names) {
        const std::optional<uint64_t> bit = capability_bit(name);
        if (!bit) log_warning(concat("capability ", name, " is not known to this kernel and is left out"));
        else if (!(available & *bit))
            log_warning(concat("capability ", name, " cannot be granted: pinfold does not have it itself"));
    }
}

// The kernel wants effective in permitted, inheritable in bounding, ambient in permitted and inheritable.
CapabilitySets plan_capabilities(const std::optional<Capabilities>& config, uint64_t available) {
    CapabilitySets sets;
    if (!config) return sets;  // none asked for, none given
    tell_left_out(*config, available);
    sets.bounding = capability_mask(config->bounding, available);
    sets.permitted = capability_mask(config->permitted, available);
    sets.effective = capability_mask(config->effective, available) & sets.permitted;
    sets.inheritable = capability_mask(config->inheritable, available) & sets.bounding;
    sets.ambient = capability_mask(config->ambient, available) & sets.permitted & sets.inheritable;
    return sets;
}

std::vector<ResourceLimit> plan_rlimits(const std::vector<Rlimit>& rlimits) {
    std::vector<ResourceLimit> limits;
    for (const Rlimit& one : rlimits) {
        if (const auto number = rlimit_number(one.type)) limits.push_back({*number, one.type, {one.soft, one.hard}});
    }
    return limits;
}

unsigned long plan_personality(const Personality& config) {
    return config.domain == "LINUX32" ? PER_LINUX32 : PER_LINUX;
}

SchedulerRequest plan_scheduler(const Scheduler& config) {
    static constexpr Named<uint32_t> kPolicies[] = {{"SCHED_OTHER", 0},   {"SCHED_FIFO", 1}, {"SCHED_RR", 2},
                                                    {"SCHED_BATCH", 3},   {"SCHED_ISO", 4},  {"SCHED_IDLE", 5},
                                                    {"SCHED_DEADLINE", 6}};
    static constexpr Named<uint64_t> kFlags[] = {
        {"SCHED_FLAG_RESET_ON_FORK", 0x01}, {"SCHED_FLAG_RECLAIM", 0x02},     {"SCHED_FLAG_DL_OVERRUN", 0x04},
        {"SCHED_FLAG_KEEP_POLICY", 0x08},   {"SCHED_FLAG_KEEP_PARAMS", 0x10}, {"SCHED_FLAG_UTIL_CLAMP_MIN", 0x20},
        {"SCHED_FLAG_UTIL_CLAMP_MAX", 0x40}};
    SchedulerRequest request{look_up(kPolicies, config.policy),
                             0,
                             config.nice,
                             static_cast<uint32_t>(config.priority),
                             config.runtime,
                             config.deadline,
                             config.period};
    for (const std::string& flag : config.flags) request.flags |= look_up(kFlags, flag);
    return request;
}

IoPriorityRequest plan_io_priority(const IoPriority& config) {
    static constexpr Named<int> kClasses[] = {{"IOPRIO_CLASS_RT", IOPRIO_CLASS_RT},
                                              {"IOPRIO_CLASS_BE", IOPRIO_CLASS_BE},
                                              {"IOPRIO_CLASS_IDLE", IOPRIO_CLASS_IDLE}};
    return {look_up(kClasses, config.io_class), config.priority};
}

MemoryPolicyRequest plan_memory_policy(const MemoryPolicy& config) {
    static constexpr Named<int> kModes[] = {{"MPOL_DEFAULT", 0},
                                            {"MPOL_PREFERRED", 1},
                                            {"MPOL_BIND", 2},
                                            {"MPOL_INTERLEAVE", 3},
                                            {"MPOL_LOCAL", 4},
                                            {"MPOL_PREFERRED_MANY", 5},
                                            {"MPOL_WEIGHTED_INTERLEAVE", 6}};
    static constexpr Named<int> kFlags[] = {
        {"MPOL_F_STATIC_NODES", 1 << 15}, {"MPOL_F_RELATIVE_NODES", 1 << 14}, {"MPOL_F_NUMA_BALANCING", 1 << 13}};
    MemoryPolicyRequest request{look_up(kModes, config.mode), parse_index_list(config.nodes).value_or(BitMask())};
    for (const std::string& flag : config.flags) request.mode |= look_up(kFlags, flag);
    return request;
}

std::string_view name_in(std::string_view entry) { return entry.substr(0, entry.find('=')); }

// Each variable once. Of two, programs do not agree which one they have: C takes the first, and some shells the last,
// which is what whoever adds one means. A home that is empty is none.
std::vector<std::string> plan_environment(const std::vector<std::string>& wanted) {
    std::vector<std::string> env;
    std::unordered_map<std::string_view, size_t> places;
    for (const std::string& entry : wanted) {
        const auto [place, is_new] = places.try_emplace(name_in(entry), env.size());
        if (is_new) env.push_back(entry);
        else env[place->second] = entry;
    }
    std::erase(env, "HOME=");
    return env;
}

bool has_home(const std::vector<std::string>& env) {
    return std::any_of(env.begin(), env.end(), [](const std::string& entry) { return entry.starts_with("HOME="); });
}

}  // namespace

ProcessPlan plan_process(const Spec& spec, unsigned preserve_fds, const HostFacts& host) {
    const Process& process = *spec.process;
    const bool in_user_namespace = std::any_of(spec.linux_.namespaces.begin(), spec.linux_.namespaces.end(),
                                               [](const Namespace& one) { return one.type == NamespaceType::user; });
    ProcessPlan plan;
    plan.args = process.args;
    plan.env = plan_environment(process.env);
    plan.add_home = !has_home(plan.env);
    plan.cwd = process.cwd;
    plan.identity = {process.user.uid,
                     process.user.gid,
                     {process.user.additional_gids.begin(), process.user.additional_gids.end()},
                     true};
    if (process.user.umask) plan.umask = *process.user.umask;
    // A user namespace gives its first process every capability over what it owns.
    plan.capabilities = plan_capabilities(process.capabilities, in_user_namespace ? ~uint64_t{0} : host.capabilities);
    plan.rlimits = plan_rlimits(process.rlimits);
    plan.oom_score_adj = process.oom_score_adj;
    if (spec.linux_.personality) plan.personality = plan_personality(*spec.linux_.personality);
    if (process.scheduler) plan.scheduler = plan_scheduler(*process.scheduler);
    if (process.io_priority) plan.io_priority = plan_io_priority(*process.io_priority);
    if (spec.linux_.memory_policy) plan.memory_policy = plan_memory_policy(*spec.linux_.memory_policy);
    plan.no_new_privileges = process.no_new_privileges;
    plan.apparmor_profile = process.apparmor_profile;
    plan.selinux_label = process.selinux_label;
    plan.terminal = process.terminal;
    if (process.terminal && process.console_size) {
        plan.window = winsize{static_cast<unsigned short>(process.console_size->height),
                              static_cast<unsigned short>(process.console_size->width), 0, 0};
    }
    plan.preserve_fds = preserve_fds;
    plan.has_memory_programs = host.has_memory_programs;
    return plan;
}

// Landlock's rules, from annotations and from what the config says of mounts.

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
    LandlockRules::Ports ports = *parse_ports(*text);  // which was validated
    if (ports && abi < kLandlockTcp) {
        return plain_error(concat("annotations[", quoted(name), "]: this kernel cannot hold a process to ports"))
            .with_hint("Landlock does from Linux 6.7 on; drop the list, or use a network namespace");
    }
    return ports;
}

// A network namespace hides both; without one, the rules are what keeps the host's out of reach.
void tell_of_gaps(int abi) {
    if (abi >= kLandlockScopes) return;
    log_warning(concat("this kernel's Landlock (version ", abi, ") does not rule on ",
                       abi < kLandlockTcp ? "TCP ports and " : "", "abstract sockets: the host's are within reach"));
}

}  // namespace

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
