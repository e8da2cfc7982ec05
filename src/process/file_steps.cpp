// The child's steps from the host's file system into the container's.
#include "process/file_steps.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/strings.hpp"
#include "kernel/rootfs.hpp"
#include "kernel/terminal.hpp"
#include "process/payload_steps.hpp"
#include "process/proc_inside.hpp"

namespace pinfold {

namespace {

// The processes that proc shows are those of the pid namespace that is still to be entered, if there is one.
Result<UniqueFd> prepare_one(const MountRequest& request, int pid_namespace) {
    const bool is_proc = request.kind == MountRequest::Kind::filesystem && request.filesystem.type == "proc";
    return is_proc && pid_namespace >= 0 ? make_proc_of(pid_namespace, request.filesystem) : prepare_mount(request);
}

// Each mount is a descriptor until it is placed, and there may be more than the caller's limit allows. The payload gets
// that limit all the same.
void allow_descriptors(ChildContext& context) {
    rlimit before{};
    if (!needs_more_descriptors(context.plan()) || ::getrlimit(RLIMIT_NOFILE, &before) != 0) return;
    const rlimit most{before.rlim_max, before.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &most) == 0) context.descriptor_limit = before;
}

bool is_prepared_by_child(const Plan& plan, const MountRequest& mount) {
    return mount.kind != MountRequest::Kind::remount && !is_opened_by_parent(plan, mount);
}

// Others may show the network of whoever makes them, as sysfs does, or need it.
bool needs_no_network(const MountRequest& mount) {
    constexpr std::string_view kTypes[] = {"proc", "tmpfs", "devpts", "mqueue"};
    return mount.kind != MountRequest::Kind::filesystem ||
           std::ranges::find(kTypes, mount.filesystem.type) != std::end(kTypes);
}

// In the order of the configuration, as their numbers tell: so the first that needs the network divides them.
std::span<const MountRequest> prepared_at(const Plan& plan, MountTime time) {
    const std::span<const MountRequest> all = plan.mounts;
    const auto before = static_cast<size_t>(std::ranges::find_if_not(all, needs_no_network) - all.begin());
    return time == MountTime::before_network ? all.first(before) : all.subspan(before);
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

}  // namespace

bool is_opened_by_parent(const Plan& plan, const MountRequest& mount) {
    return mount.kind == MountRequest::Kind::bind && (plan.parent_opens_sources || mount.id_maps);
}

bool has_own_mounts(const ChildRequest& request) { return request.plan->new_mount_namespace(); }

Result<void> cut_off_mounts(ChildContext& context) { return isolate_mounts(context.plan().root); }

Actions tell_cut_off(const ChildRequest&) { return {"cut off from the host's mount events"}; }

// Before all other mounts, as their numbers tell: some programs take the first of the list for the root.
Result<void> open_root(ChildContext& context) {
    const RootRequest& request = context.plan().root;
    allow_descriptors(context);
    UniqueFd& tree = context.trees.root;
    if (!tree && request.uses_path()) tree = TRY(clone_source(request.path, true));
    if (request.made && !request.made->over_directory) tree = TRY(make_root(*request.made, std::move(tree)));
    return {};
}

Actions tell_root(const ChildRequest& request) {
    const Plan& plan = *request.plan;
    if (!plan.root.uses_path()) return {"make a file system in memory"};
    return {plan.parent_opens_sources ? "take what the parent has opened" : concat("open ", plan.root.path)};
}

bool needs_more_descriptors(const Plan& plan) {
    constexpr size_t kFew = 500;
    return plan.mounts.size() > kFew;
}

bool prepares_mounts(const ChildRequest& request, MountTime time) {
    const auto is_ours = [&](const MountRequest& mount) { return is_prepared_by_child(*request.plan, mount); };
    return has_own_mounts(request) && std::ranges::any_of(prepared_at(*request.plan, time), is_ours);
}

Result<void> prepare_mounts(ChildContext& context, MountTime time) {
    for (const MountRequest& request : prepared_at(context.plan(), time)) {
        UniqueFd& mount = context.trees.mounts[static_cast<size_t>(&request - context.plan().mounts.data())];
        if (!mount) mount = TRY_IN(request.label, prepare_one(request, context.pid_namespace.get()));
    }
    return {};
}

Actions tell_prepared_mounts(const ChildRequest& request, MountTime time) {
    Actions actions;
    for (const MountRequest& mount : prepared_at(*request.plan, time)) {
        if (!is_prepared_by_child(*request.plan, mount)) continue;
        const bool is_bind = mount.kind == MountRequest::Kind::bind;
        actions.push_back(concat(mount.label, is_bind ? ": open " : ": make ",
                                 is_bind ? mount.filesystem.source : mount.filesystem.type));
    }
    return actions;
}

// Over its own directory, so that all paths of the host lead where they do without a container: over "/" it would be
// what "/usr/.." leads to, and a hook of the host's that is reached so would be a program of the image. Over "/" only
// where it has no directory, or none that we can reach, where the host would see the mount, and where it is not
// pivoted: whoever climbs out of a chroot has to be in it again.
Result<void> place_root(ChildContext& context) {
    const RootRequest& request = context.plan().root;
    UniqueFd tree = std::move(context.trees.root);
    if (request.made && request.made->over_directory) tree = TRY(make_root(*request.made, std::move(tree)));
    const bool over_itself = !request.made && request.pivot && request.propagation != MS_SHARED;
    const UniqueFd place(over_itself ? ::open(request.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
    if (!place) {
        context.root.emplace(TRY(attach_root(std::move(tree))));
        return {};
    }
    TRY(change_mount(tree.get(), MountChange{.propagation = MS_PRIVATE}, true));
    TRY_IN("attach it to its directory", place_mount(tree.get(), place.get()));
    context.root.emplace(std::move(tree));
    return {};
}

Actions tell_placed_root(const ChildRequest& request) {
    const RootRequest& root = request.plan->root;
    const bool is_covered = root.made && root.made->over_directory;
    return {concat("attach ", root.uses_path() ? root.path : "it", is_covered ? " below a layer in memory" : "",
                   root.readonly ? ", read-only once all is mounted" : "")};
}

// In a directory of the host's that is the payload's user's, mount points are that user's.
Result<void> place_mounts(ChildContext& context) {
    context.root->make_as(context.process().identity.uid, context.process().identity.gid);
    const std::vector<MountRequest>& requests = context.plan().mounts;
    for (size_t i = 0; i < requests.size(); ++i)
        TRY_IN(requests[i].label, apply_mount(*context.root, requests[i], std::move(context.trees.mounts[i])));
    return {};
}

Actions tell_mounts(const ChildRequest& request) { return each(request.plan->mounts, mount_words); }

Result<void> make_devices(ChildContext& context) {
    return make_devices(*context.root, context.plan().devices, context.plan().bind_devices);
}

Actions tell_devices(const ChildRequest& request) {
    const bool binds = request.plan->bind_devices;
    return each(request.plan->devices, [&](const DeviceNode& node) {
        const char* kind = S_ISBLK(node.mode) ? "b" : S_ISFIFO(node.mode) ? "p" : "c";
        return concat(node.path, ": ", binds ? "bind " : "make ", kind, " ", major(node.device), ":",
                      minor(node.device), " mode ", octal(node.mode & 07777), " owner ", node.uid, ":", node.gid);
    });
}

Result<void> make_links(ChildContext& context) { return make_links(*context.root, context.plan().links); }

Actions tell_links(const ChildRequest& request) {
    return each(request.plan->links, [](const Link& link) { return concat(link.path, " -> ", link.target); });
}

Result<void> set_up_terminal(ChildContext& context) {
    const Pty pty = TRY(open_container_pty(context.root->get()));
    TRY(bind_console(*context.root, pty.slave.get()));
    TRY(hand_over_terminal(pty, context.process().identity.uid, context.setup, context.handshake));
    const bool is_anothers = context.pid_namespace || context.plan().sandbox_init;  // who claims it later
    return is_anothers ? place_terminal(pty.slave.get()) : attach_terminal(pty.slave.get());
}

Actions tell_terminal(const ChildRequest&) {
    return {"open a terminal in the container's devpts, bind it to /dev/console"};
}

Result<void> mask_paths(ChildContext& context) {
    return mask_paths(*context.root, context.plan().masked_paths, context.plan().mount_label);
}

Actions tell_masked_paths(const ChildRequest& request) { return request.plan->masked_paths; }

Result<void> make_paths_readonly(ChildContext& context) {
    return make_paths_readonly(*context.root, context.plan().readonly_paths);
}

Actions tell_readonly_paths(const ChildRequest& request) { return request.plan->readonly_paths; }

Result<void> enter_root(ChildContext& context) {
    TRY(enter_root(*context.root, context.plan().root));
    context.root.reset();
    if (context.descriptor_limit && ::setrlimit(RLIMIT_NOFILE, &*context.descriptor_limit) != 0)
        return errno_error("set RLIMIT_NOFILE back");
    return {};
}

Actions tell_entered_root(const ChildRequest& request) {
    return {request.plan->root.pivot ? "pivot_root, and unmount the host's tree" : "chroot"};
}

}  // namespace pinfold
