// What each step of a plan does, in words.
#include "plan/describe.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdio>

#include "base/strings.hpp"
#include "cgroup/path.hpp"

namespace pinfold {

bool is_opened_by_parent(const Plan& plan, const MountRequest& mount) {
    return mount.kind == MountRequest::Kind::bind && (plan.parent_opens_sources || mount.id_maps);
}

namespace {

using Actions = std::vector<std::string>;

std::string hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
}

std::string octal(unsigned value) {
    char text[16];
    std::snprintf(text, sizeof text, "%04o", value);
    return text;
}

std::string attribute_words(uint64_t attributes) {
    static constexpr struct {
        uint64_t bit;
        const char* word;
    } kWords[] = {{MOUNT_ATTR_RDONLY, "ro"},
                  {MOUNT_ATTR_NOSUID, "nosuid"},
                  {MOUNT_ATTR_NODEV, "nodev"},
                  {MOUNT_ATTR_NOEXEC, "noexec"},
                  {MOUNT_ATTR_NOATIME, "noatime"},
                  {MOUNT_ATTR_STRICTATIME, "strictatime"},
                  {MOUNT_ATTR_NODIRATIME, "nodiratime"},
                  {MOUNT_ATTR_NOSYMFOLLOW, "nosymfollow"}};
    std::string words;
    for (const auto& entry : kWords) {
        if (attributes & entry.bit) words += concat(words.empty() ? "" : ",", entry.word);
    }
    return words;
}

std::string mount_words(const MountRequest& mount) {
    std::string options = attribute_words(mount.filesystem.attributes | mount.change.set);
    for (const FilesystemOption& option : mount.filesystem.options) {
        if (option.key == "ro") continue;
        options += concat(options.empty() ? "" : ",", option.key, option.is_flag ? "" : "=", option.value);
    }
    const std::string recursive = attribute_words(mount.recursive_change.set);
    const std::string tail =
        concat(options.empty() ? "" : " with ", options, recursive.empty() ? "" : ", the whole tree ", recursive,
               mount.copy_up ? ", starting with the image's files" : "", mount.id_maps ? ", ids mapped" : "");
    std::vector<std::string> hierarchies;
    for (const auto& hierarchy : mount.hierarchies) hierarchies.push_back(hierarchy.name);
    switch (mount.kind) {
        case MountRequest::Kind::cgroup_tree:
            return concat(mount.label, ": mount tmpfs for the groups in ", join(hierarchies, " "), tail);
        case MountRequest::Kind::bind:
            return concat(mount.label, ": ", mount.recursive ? "rbind " : "bind ", mount.filesystem.source, tail);
        case MountRequest::Kind::remount: return concat(mount.label, ": change", tail);
        default: return concat(mount.label, ": mount ", mount.filesystem.type, tail);
    }
}

std::string write_words(const CgroupWrite& write) {
    std::string words = concat(write.property, ": write ", quoted(write.value), " to ", write.file);
    if (!write.alternate_file.empty())
        words +=
            concat(", and ", quoted(write.alternate_value), " to ", write.alternate_file, ", as far as there are such");
    return words;
}

Actions describe_scope(const CgroupPlan& cgroup) {
    const CgroupPath& place = cgroup.place;
    Actions actions = {concat("let systemd start ", place.scope, ", the group ", place.mount, place.path)};
    for (const std::string& property : cgroup.scope_properties) actions.push_back(concat("with ", property));
    return actions;
}

Actions describe_own_group(const CgroupPlan& cgroup) {
    Actions actions;
    if (!cgroup.place.mount.empty())
        actions.push_back(concat("make the group ", cgroup.place.mount, cgroup.place.path));
    for (const std::string& mount : v1_mounts(cgroup.place))
        actions.push_back(concat("make the group ", mount, cgroup.place.path));
    for (const std::string& controller : cgroup.controllers)
        actions.push_back(concat("enable the controller ", controller));
    return actions;
}

void add_limits(const CgroupPlan& cgroup, Actions& actions) {
    for (const auto* writes : {&cgroup.writes, &cgroup.v1_writes, &cgroup.device_writes}) {
        for (const CgroupWrite& write : *writes) actions.push_back(write_words(write));
    }
    if (cgroup.filter_devices)
        actions.push_back(concat("attach a device program of ", cgroup.device_rules.size(), " rules"));
    if (cgroup.owner) actions.push_back(concat("give the group to user ", *cgroup.owner));
}

Actions describe_cgroup(const CgroupPlan& cgroup) {
    if (!cgroup.place.exists()) return {};
    if (!cgroup.place.scope.empty()) return {concat("look for the controllers of ", cgroup.place.mount)};
    Actions actions = describe_own_group(cgroup);
    add_limits(cgroup, actions);
    return actions;
}

// What takes a process: the clone goes straight into a group of cgroup v2.
Actions describe_admission(const CgroupPlan& cgroup) {
    if (!cgroup.place.scope.empty()) {
        Actions actions = describe_scope(cgroup);
        add_limits(cgroup, actions);
        return actions;
    }
    Actions actions;
    for (const std::string& mount : v1_mounts(cgroup.place))
        actions.push_back(concat("put the child into ", mount, cgroup.place.path));
    return actions;
}

Actions describe_net_devices(const std::vector<NetDeviceMove>& devices) {
    Actions actions;
    for (const NetDeviceMove& device : devices)
        actions.push_back(concat("move ", device.host_name, " into the container as ", device.name));
    return actions;
}

Actions new_namespaces(uint64_t flags) {
    Actions actions;
    for (const uint64_t flag :
         {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWNS, CLONE_NEWCGROUP}) {
        if (flags & flag) actions.push_back(concat("new ", namespace_name(flag), " namespace"));
    }
    return actions;
}

Actions describe_clone(const NamespacePlan& namespaces) {
    Actions actions;
    for (const NamespaceToJoin& one : namespaces.join)
        actions.push_back(concat("join the ", namespace_name(one.flag), " namespace ", one.path));
    if (namespaces.create_time) actions.push_back("new time namespace");
    for (const auto& [clock, offset] : namespaces.clock_offsets) {
        actions.push_back(concat("shift ", clock, " by ", offset.seconds, " s ", offset.nanoseconds, " ns"));
    }
    for (std::string& created : new_namespaces(namespaces.create)) actions.push_back(std::move(created));
    actions.push_back("clone the child");
    return actions;
}

Actions describe_id_maps(const std::optional<IdMaps>& maps) {
    if (!maps) return {};
    Actions actions;
    const auto add = [&](const char* what, const std::vector<IdRange>& ranges) {
        for (const IdRange& range : ranges) {
            actions.push_back(
                concat(what, " ", range.inside, " in the container is ", range.outside, " outside, for ", range.count));
        }
    };
    add("uid", maps->uids);
    add("gid", maps->gids);
    if (maps->by_helper) actions.push_back("written by newuidmap and newgidmap");
    return actions;
}

Actions describe_devices(const Plan& plan) {
    Actions actions;
    for (const DeviceNode& node : plan.devices) {
        const char* kind = S_ISBLK(node.mode) ? "b" : S_ISFIFO(node.mode) ? "p" : "c";
        actions.push_back(concat(node.path, ": ", plan.bind_devices ? "bind " : "make ", kind, " ", major(node.device),
                                 ":", minor(node.device), " mode ", octal(node.mode & 07777), " owner ", node.uid, ":",
                                 node.gid));
    }
    return actions;
}

Actions describe_sources(const Plan& plan) {
    Actions actions;
    if (plan.parent_opens_sources)
        actions.push_back(plan.root.uses_path() ? concat("open ", plan.root.path) : "nothing for the root");
    for (const MountRequest& mount : plan.mounts) {
        if (is_opened_by_parent(plan, mount))
            actions.push_back(concat(mount.label, ": open ", mount.filesystem.source));
    }
    return actions;
}

Actions describe_prepared_mounts(const Plan& plan) {
    Actions actions;
    for (const MountRequest& mount : plan.mounts) {
        const bool is_bind = mount.kind == MountRequest::Kind::bind;
        if (mount.kind == MountRequest::Kind::remount || is_opened_by_parent(plan, mount)) continue;
        actions.push_back(concat(mount.label, is_bind ? ": open " : ": make ",
                                 is_bind ? mount.filesystem.source : mount.filesystem.type));
    }
    return actions;
}

Actions describe_root(const Plan& plan) {
    if (!plan.root.uses_path()) return {"make a file system in memory"};
    return {plan.parent_opens_sources ? "take what the parent has opened" : concat("open ", plan.root.path)};
}

Actions describe_attached_root(const RootRequest& root) {
    const bool is_covered = root.made && root.made->over_directory;
    return {concat("attach ", root.uses_path() ? root.path : "it", is_covered ? " below a layer in memory" : "",
                   root.readonly ? ", read-only once all is mounted" : "")};
}

template <class Items, class Words>
Actions each(const Items& items, Words words) {
    Actions actions;
    for (const auto& item : items) actions.push_back(words(item));
    return actions;
}

Actions describe_user(const ProcessPlan& process) {
    std::string groups;
    for (const gid_t group : process.identity.groups) groups += concat(groups.empty() ? "" : ",", group);
    Actions actions = {concat("uid ", process.identity.uid, ", gid ", process.identity.gid)};
    if (!process.identity.set_groups)
        actions.push_back("the caller's additional groups stay: setgroups is denied in this user namespace");
    else actions.push_back(groups.empty() ? "no additional groups" : concat("additional groups ", groups));
    if (process.umask) actions.push_back(concat("umask ", octal(*process.umask)));
    return actions;
}

Actions describe_capabilities(const CapabilitySets& sets) {
    return {concat("effective ", hex(sets.effective)), concat("permitted ", hex(sets.permitted)),
            concat("inheritable ", hex(sets.inheritable)), concat("ambient ", hex(sets.ambient))};
}

Actions describe_landlock(const std::optional<LandlockRules>& rules) {
    if (!rules) return {};
    Actions actions = each(rules->places, [](const LandlockRules::Place& place) {
        return concat(place.path, place.writable ? " can be written" : " can be read");
    });
    const auto add_ports = [&](std::string_view what, const LandlockRules::Ports& ports) {
        if (!ports) return;
        std::string list;
        for (const uint16_t port : *ports) list += concat(' ', port);
        actions.push_back(concat(what, list.empty() ? " none" : list));
    };
    add_ports("TCP ports to listen on:", rules->tcp_bind);
    add_ports("TCP ports to connect to:", rules->tcp_connect);
    if (rules->own_abstract_sockets) actions.emplace_back("no abstract sockets but its own");
    return actions;
}

Actions describe_rlimits(const ProcessPlan& process) {
    return each(process.rlimits, [](const ResourceLimit& limit) {
        return concat(limit.name, ": soft ", limit.limit.rlim_cur, ", hard ", limit.limit.rlim_max);
    });
}

Actions describe_seccomp(const std::optional<Seccomp>& seccomp) {
    if (!seccomp) return {};
    size_t names = 0;
    for (const SyscallRule& rule : seccomp->syscalls) names += rule.names.size();
    return {concat("filter: default ", seccomp->default_action, ", ", seccomp->syscalls.size(), " rules for ", names,
                   " system calls")};
}

Actions hook_words(std::string_view kind, const std::vector<Hook>& hooks, std::string_view where) {
    return each(hooks, [&](const Hook& hook) { return concat(kind, ": run ", hook.path, " ", where); });
}

Actions describe_create_hooks(const Hooks& hooks) {
    Actions actions = hook_words("prestart", hooks.prestart, "on the host");
    for (Actions more : {hook_words("createRuntime", hooks.create_runtime, "on the host"),
                         hook_words("createContainer", hooks.create_container, "in the container's namespaces")}) {
        actions.insert(actions.end(), more.begin(), more.end());
    }
    return actions;
}

Actions when(bool condition, std::string action) { return condition ? Actions{std::move(action)} : Actions{}; }

Actions describe_parent_step(Step step, const Plan& plan) {
    switch (step) {
        case Step::own_binary: return when(plan.protect_binary, "run from a read-only clone of pinfold's own file");
        case Step::state: return {"write the state"};
        case Step::cgroup: return describe_cgroup(plan.cgroup);
        case Step::filter: return when(plan.seccomp.has_value(), "compile the filter, unless it was before");
        case Step::admit: return describe_admission(plan.cgroup);
        case Step::record_init: return {"write which process is the first"};
        case Step::sources: return describe_sources(plan);
        case Step::clone: return describe_clone(plan.namespaces);
        case Step::id_maps: return describe_id_maps(plan.id_maps);
        case Step::oom_score_adj:
            return plan.process.oom_score_adj ? Actions{concat("write ", *plan.process.oom_score_adj)} : Actions{};
        case Step::streams:
            return when(plan.stream_owner.has_value(),
                        concat("pipes become those of uid ", plan.stream_owner.value_or(0)));
        default: return {};
    }
}

Actions describe_process_step(Step step, const ProcessPlan& process) {
    switch (step) {
        case Step::personality:
            return process.personality ? Actions{concat("execution domain ", *process.personality)} : Actions{};
        case Step::scheduler: return when(process.scheduler.has_value(), "set the scheduling policy");
        case Step::io_priority: return when(process.io_priority.has_value(), "set the I/O priority");
        case Step::memory_policy: return when(process.memory_policy.has_value(), "set the memory policy");
        case Step::rlimits: return describe_rlimits(process);
        case Step::bounding_set: return {concat("keep ", hex(process.capabilities.bounding))};
        case Step::user: return describe_user(process);
        case Step::executable: return {concat("find ", quoted(process.args.front()))};
        case Step::let_go:
            return {concat("close all from ", 3 + process.preserve_fds, " on when the program is executed")};
        case Step::capabilities: return describe_capabilities(process.capabilities);
        case Step::no_new_privileges: return when(process.no_new_privileges, "forbid new privileges");
        case Step::landlock: return describe_landlock(process.landlock);
        case Step::selinux:
            return when(!process.selinux_label.empty(), concat("label ", process.selinux_label, " from execve on"));
        case Step::apparmor:
            return when(!process.apparmor_profile.empty(),
                        concat("profile ", process.apparmor_profile, " from execve on"));
        case Step::cwd: return {process.cwd};
        case Step::terminal:
            return when(process.terminal, "open a terminal in the container's devpts, bind it to /dev/console");
        case Step::exec: return {join(process.args, " ")};
        default: return {};
    }
}

Actions describe_mount_step(Step step, const Plan& plan) {
    if (!plan.new_mount_namespace()) return {};
    switch (step) {
        case Step::mount_namespace: return {"cut off from the host's mount events"};
        case Step::prepare_mounts: return describe_prepared_mounts(plan);
        case Step::root: return describe_root(plan);
        case Step::attach_root: return describe_attached_root(plan.root);
        case Step::mounts: return each(plan.mounts, mount_words);
        case Step::devices: return describe_devices(plan);
        case Step::links:
            return each(plan.links, [](const Link& link) { return concat(link.path, " -> ", link.target); });
        case Step::masked_paths: return plan.masked_paths;
        case Step::readonly_paths: return plan.readonly_paths;
        case Step::pivot_root: return {plan.root.pivot ? "pivot_root, and unmount the host's tree" : "chroot"};
        default: return {};
    }
}

}  // namespace

std::vector<std::string> describe_step(Step step, const Plan& plan) {
    switch (step) {
        case Step::session: return {"new session"};
        case Step::enter_user_namespace: return when(plan.id_maps.has_value(), "become root in the user namespace");
        case Step::late_namespaces: return new_namespaces(plan.namespaces.create_in_child);
        case Step::net_devices: return describe_net_devices(plan.net_devices);
        case Step::loopback: return when(plan.namespaces.creates(CLONE_NEWNET), "bring lo up");
        case Step::keyring: return when(!plan.keyring.empty(), concat("join the new session keyring ", plan.keyring));
        case Step::hostname: return when(!plan.hostname.empty(), plan.hostname);
        case Step::domainname: return when(!plan.domainname.empty(), plan.domainname);
        case Step::create_hooks: return describe_create_hooks(plan.hooks);
        case Step::start_hooks: return hook_words("startContainer", plan.hooks.start_container, "in the container");
        case Step::sysctl:
            return each(plan.sysctls,
                        [](const SysctlSetting& setting) { return concat(setting.key, " = ", setting.value); });
        case Step::keeper: return when(plan.keeper.has_value(), "stay, and start the payload as a child");
        case Step::seccomp: return describe_seccomp(plan.seccomp);
        default: break;
    }
    if (step < kFirstChildStep) return describe_parent_step(step, plan);
    Actions actions = describe_mount_step(step, plan);
    return actions.empty() ? describe_process_step(step, plan.process) : actions;
}

}  // namespace pinfold
