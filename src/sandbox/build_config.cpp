// From a job to a container.
#include "sandbox/build_config.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "kernel/namespaces.hpp"
#include "kernel/surroundings.hpp"
#include "pinfold/generate.hpp"
#include "policy/check_request.hpp"
#include "policy/host_path.hpp"
#include "sandbox/host_root.hpp"
#include "sandbox/rlimit_fallback.hpp"
#include "sandbox/scratch.hpp"
#include "sandbox/template_root.hpp"
#include "seccomp/profiles.hpp"
#include "seccomp/set_id.hpp"
#include "spec/parse.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kSmallRoot = 4 * kMegabyte;  // for mount points and a few files of names

// Where a descriptor leads to.
Result<std::string> path_of(const UniqueFd& fd) {
    std::string path = link_target(concat("/proc/self/fd/", fd.get()));
    if (path.empty()) return errno_error("read the name of an opened directory");
    return path;
}

// "UID[:GID]"
Result<User> parse_user(const std::string& text) {
    User user{kSandboxUser, kSandboxUser, {}, {}};
    if (text.empty()) return user;
    const std::vector<std::string_view> parts = split(text, ':');
    const auto uid = parse_number<uint32_t>(parts[0]);
    const auto gid = parts.size() > 1 ? parse_number<uint32_t>(parts[1]) : uid;
    if (parts.size() > 2 || !uid || !gid || *uid >= kSandboxIdCount || *gid >= kSandboxIdCount) {
        return plain_error(concat("--user ", quoted(text), ": expected UID or UID:GID, each from 0 to 65535"));
    }
    user.uid = *uid;
    user.gid = *gid;
    return user;
}

// For root: a range that no account has, and which one depends on the sandbox, so that what gets out of one has no
// power over another. A normal user has one id to give, and it is the payload's; and so has who is root in a user
// namespace alone, where there are few others.
Result<void> map_ids(const HostFacts& host, const std::string& id, GenerateOptions& options) {
    if (!host.is_root() || !host.initial_user_namespace) {
        if (host.is_root() && is_hosts_root() &&
            !look_around().is_gvisor)  // there the start itself fails, and says why
            return plain_error("root of this user namespace is the host's root, and no other id is there for a job")
                .with_hint("call pinfold as root outside of it, or make the namespace as a normal user");
        options.uid_mappings = {{options.user.uid, host.uid, 1}};
        options.gid_mappings = {{options.user.gid, host.gid, 1}};
        return {};
    }
    constexpr uint32_t kRanges = 4096;
    const Sha256Digest digest = sha256(id);
    const uint32_t range = (uint32_t{digest[0]} << 8 | digest[1]) % kRanges;
    const IdMapping map{0, kSandboxIds + range * kSandboxIdCount, kSandboxIdCount};
    options.uid_mappings = options.gid_mappings = {map};
    return {};
}

// What a bundle says of its program, where the job does not; and its root, which is read like a directory that is
// bound.
Result<UniqueFd> take_from_bundle(const std::string& bundle, const Policies& policies, GenerateOptions& options) {
    const UniqueFd opened = TRY_IN("--bundle", open_allowed(policies, concat(bundle, "/."), Access::read));
    const std::string directory = TRY(path_of(opened));
    const std::string file = concat(directory, "/config.json");
    const UniqueFd config = TRY_IN(
        "--bundle", open_allowed(policies, concat("/proc/self/fd/", opened.get(), "/config.json"), Access::read));
    const std::string text = TRY_IN(file, read_config(concat("/proc/self/fd/", config.get())));
    const Spec spec = TRY(parse_config(text, file, directory));
    if (options.args.empty()) options.args = spec.process->args;
    options.cwd = spec.process->cwd;
    for (const std::string& one : spec.process->env) {
        const std::string name = one.substr(0, one.find('=') + 1);
        const auto same = [&](const std::string& given) { return given.starts_with(name); };
        if (std::ranges::none_of(options.env, same)) options.env.push_back(one);
    }
    const std::string& root = spec.root.path;
    const std::string path = root.starts_with('/') ? root : concat("/proc/self/fd/", opened.get(), '/', root);
    return TRY_IN("--bundle", open_allowed(policies, path, Access::read));
}

Result<void> find_root(const SandboxJob& job, const Policies& policies, GenerateOptions& options, JobConfig& config) {
    if ((job.rootfs.empty() ? 0 : 1) + (job.bundle.empty() ? 0 : 1) + (job.root_template.empty() ? 0 : 1) > 1)
        return plain_error("--rootfs, --bundle and --template exclude each other");
    if (job.rootfs.empty() && job.bundle.empty()) return {};
    config.root_source = job.rootfs.empty() ? TRY(take_from_bundle(job.bundle, policies, options))
                                            : TRY_IN("--rootfs", open_allowed(policies, job.rootfs, Access::read));
    config.root_path = TRY(path_of(config.root_source));
    return {};
}

// The ids of a file system as the sandbox is to have them: what belongs to `owner` belongs to `user` inside. All others
// keep the numbers that the host has: nobody inside has one of those, nor can take it, as the sandbox's own begin at
// `base`. So nobody but the user can be anybody there, by whatever id an exec asks for. In an image they are the
// image's, and are what they are for its processes.
std::vector<IdMapping> owner_becomes(uint32_t owner, uint32_t user, uint32_t base, bool is_image) {
    constexpr uint32_t kNoId = UINT32_MAX;
    struct Taken {
        uint32_t first;
        uint32_t end;
    };
    std::vector<Taken> taken = {{owner, owner + 1}};
    if (is_image) taken.insert(taken.end(), {{user, user + 1}, {kSandboxIdCount, kNoId}});
    else taken.insert(taken.end(), {{base, base + kSandboxIdCount}, {kNoId, kNoId}});
    std::ranges::sort(taken, {}, &Taken::first);
    std::vector<IdMapping> map = {{owner, base + user, 1}};
    uint32_t next = 0;
    for (const Taken& one : taken) {
        if (next < one.first) map.push_back({next, is_image ? base + next : next, one.first - next});
        next = std::max(next, one.end);
    }
    return map;
}

// Whether the kernel does it: not all file systems can, nor what is mounted so already.
Result<void> try_mapped(const std::string& source, const IdMaps& maps) {
    MountRequest request;
    request.filesystem.source = source;
    request.recursive = request.recursive_id_maps = true;
    request.id_maps = maps;
    TRY(open_bind_source(request));
    return {};
}

struct MountMaps {
    std::vector<IdMapping> uids;
    std::vector<IdMapping> gids;

    IdMaps ranges() const { return plan_id_maps(uids, gids, {}); }
};

// As its owner would: a group of the directory's may be one that the owner is not in, and its files then none of the
// owner's business. Accounts that are not in /etc/passwd mostly have a group of their own number; where that is not the
// directory's either, it is `nobodys`.
gid_t group_of(const struct stat& directory, gid_t nobodys) {
    constexpr size_t kMost = 16 << 20;
    const Result<std::string> accounts = read_regular("/etc/passwd", kMost);
    for (const std::string_view line : accounts ? split(*accounts, '\n') : std::vector<std::string_view>()) {
        const std::vector<std::string_view> fields = split(line, ':');  // name:password:uid:gid:...
        if (fields.size() < 4 || parse_number<uid_t>(fields[2]) != directory.st_uid) continue;
        return parse_number<gid_t>(fields[3]).value_or(nobodys);
    }
    return directory.st_gid == directory.st_uid ? directory.st_gid : nobodys;
}

// The directory's owner outside is the job's user inside, so that files which the job makes are that owner's. A caller
// that is not root has one id to give, and it is the job's already.
Result<MountMaps> maps_of_owner(const UniqueFd& source, const Spec& spec, const std::string& what, bool is_root) {
    struct stat info {};
    if (::fstat(source.get(), &info) != 0) return errno_error(concat(what, ": stat"));
    const User& user = spec.process->user;
    // An image of root's: there are no rights in it that root has not, and nothing is ever written to it.
    const bool is_image = is_root && info.st_uid == 0;
    const uint32_t gids = spec.linux_.gid_mappings.front().host_id;
    MountMaps maps{owner_becomes(info.st_uid, user.uid, spec.linux_.uid_mappings.front().host_id, is_image),
                   owner_becomes(group_of(info, gids + user.gid), user.gid, gids, is_image)};
    TRY(try_mapped(concat("/proc/self/fd/", source.get()), maps.ranges()));
    return maps;
}

// None: it cannot be done here.
Result<std::optional<MountMaps>> map_owner(const UniqueFd& source, const Spec& spec, const std::string& what,
                                           bool is_root = false) {
    Result<MountMaps> tried = maps_of_owner(source, spec, what, is_root);
    if (tried) return std::optional(std::move(*tried));
    log_warning(concat(what, ": its files belong to nobody inside, as their ids cannot be mapped (",
                       tried.error().message, "): let others read and write it (chmod o+rwX), or copy with --copy-in ",
                       "and --copy-out"));
    return std::optional<MountMaps>();
}

uint64_t size_of(const Mount& memory) {
    constexpr std::string_view kSize = "size=";
    const auto size = std::ranges::find_if(memory.options, [&](const auto& one) { return one.starts_with(kSize); });
    return size == memory.options.end() ? 0 : parse_number<uint64_t>(size->substr(kSize.size())).value_or(0);
}

Result<void> check_apart(std::string_view option, const UniqueFd& shown, const std::string& place) {
    const std::string path = shown ? TRY(path_of(shown)) : "";
    if (!shown || !is_within(place, path)) return {};
    return plain_error(
               concat(option, ' ', quoted(place), ": ", quoted(path), ", which the sandbox is shown, contains it"))
        .with_hint("name a directory of its own");
}

// A tree that is shown with all that is mounted in it would show a scratch in place of the host's own directory, and
// let the sandbox change what is above its kept files.
Result<void> check_apart(std::string_view option, const std::string& place, const JobConfig& config) {
    TRY(check_apart(option, config.root_source, place));
    for (const UniqueFd& source : config.sources) TRY(check_apart(option, source, place));
    return {};
}

Mount& mount_at(const std::string& place, JobConfig& config) {
    return *std::ranges::find(config.spec.mounts, place, &Mount::destination);
}

Mount shown_at(const std::string& place, const UniqueFd& source) {
    return {place, "bind", concat("/proc/self/fd/", source.get()), {"bind", "rprivate", "nosuid", "nodev"}, {}, {}};
}

// The work directory's share, on a disk.
Result<void> move_to_disk(const Scratch& scratch, JobConfig& config) {
    const std::string place = TRY(path_of(scratch.directory()));
    TRY(check_apart("--scratch", place, config));
    Mount& workspace = mount_at(kWorkspace, config);
    UniqueFd disk = TRY_IN("--scratch", scratch.make(size_of(workspace)));
    workspace = shown_at(kWorkspace, disk);
    // It is nobody else's, so its ids need no map.
    const uid_t uid = config.spec.linux_.uid_mappings.front().host_id + config.spec.process->user.uid;
    const gid_t gid = config.spec.linux_.gid_mappings.front().host_id + config.spec.process->user.gid;
    if (::fchownat(disk.get(), "", uid, gid, AT_EMPTY_PATH) != 0) return errno_error("--scratch: give it to the job");
    config.sources.push_back(std::move(disk));
    return {};
}

// What a mount of a directory of the caller's takes: nobody else answers there, and nobody has rights by its programs.
Result<void> check_shown(const UniqueFd& source, bool writable) {
    TRY(check_no_sockets(source.get()));
    return writable ? check_no_set_id(source.get()) : Result<void>();
}

// In place of the two that are in memory. Files of nobody's would be lost to the job, so their ids have to be mapped.
Result<void> show_kept(bool map_ids, JobConfig& config) {
    const std::string what = concat("--keep-files ", quoted(config.kept->path()));
    TRY(check_apart("--keep-files", config.kept->path(), config));
    for (const char* place : kKeptPlaces) {
        UniqueFd source = TRY(config.kept->open_tree(place));
        TRY_IN(what, check_shown(source, true));
        Mount& mount = mount_at(place, config) = shown_at(place, source);
        if (map_ids) {
            Result<MountMaps> maps = maps_of_owner(source, config.spec, what, false);
            if (!maps)
                return std::move(maps).error().within(what).with_hint(
                    "its file system cannot map ids: name a directory on another, as ext4, xfs or btrfs");
            mount.uid_mappings = std::move(maps->uids);
            mount.gid_mappings = std::move(maps->gids);
        }
        config.sources.push_back(std::move(source));
    }
    config.spec.annotations[kKeptAnnotation] = config.kept->path();
    return {};
}

// Before anything of it is opened.
Result<void> check_keeping(const SandboxJob& job, bool stays) {
    if (job.keep_files.empty()) return {};
    if (!stays) return plain_error("--keep-files is for a sandbox that stays: --detach");
    if (!job.scratch.empty()) return plain_error("--keep-files and --scratch exclude each other");
    for (const HostBind& bind : job.binds) {
        const std::string place = plain_path(bind.destination);
        if (std::ranges::find(kKeptPlaces, place) == std::end(kKeptPlaces)) continue;
        return plain_error(concat("--keep-files: ", quoted(place), " is taken by ", quoted(bind.source)))
            .with_hint("bind it elsewhere, as below /workspace");
    }
    return check_disk(job);
}

// Where it was probably meant to be. A file goes to a place of its own name, which a directory may have as well.
std::string meant_bind(const HostBind& bind) {
    const std::string_view option = bind.writable ? "--bind " : "--ro-bind ";
    if (bind.source.find(":/") != std::string::npos && bind.destination == "ro")
        return concat("one that is read-only is another option: --ro-bind ", bind.source);
    if (bind.source.find(":/") != std::string::npos && bind.destination == "rw")
        return concat("one that is written to is another option: --bind ", bind.source);
    const std::string path = plain_path(bind.source);
    const std::string name = path.substr(path.rfind('/') + 1);
    const bool has_name = !name.empty() && name != "." && name != "..";
    return concat("say where it is to be inside: ", option, bind.source, ":/workspace", has_name ? "/" : "",
                  has_name ? name : "");
}

// What lies deeper comes later, or it would be hidden by what it lies in.
Result<std::vector<HostBind>> in_order(std::vector<HostBind> binds) {
    for (HostBind& bind : binds) {
        if (!bind.destination.starts_with('/'))
            return plain_error(
                       concat(option_of(bind), ": the destination ", quoted(bind.destination), " is not absolute"))
                .with_hint(meant_bind(bind));
        bind.destination = plain_path(bind.destination);
    }
    std::ranges::stable_sort(binds, {}, [](const HostBind& bind) { return std::ranges::count(bind.destination, '/'); });
    for (auto bind = binds.begin(); bind != binds.end(); ++bind) {
        const auto same = std::find_if(bind + 1, binds.end(),
                                       [&](const HostBind& other) { return other.destination == bind->destination; });
        if (same == binds.end()) continue;
        return plain_error(concat(option_of(*same), ": ", quoted(bind->destination), " is taken by ", option_of(*bind)))
            .with_hint("give each a destination of its own: --bind SRC:DST");
    }
    return binds;
}

// By descriptor: what was looked at is what is mounted, whatever happens to its name meanwhile.
Result<void> add_binds(const std::vector<HostBind>& binds, const Policies& policies, bool map_ids, JobConfig& config) {
    for (const HostBind& bind : binds) {
        const std::string what = option_of(bind);
        Result<UniqueFd> opened = open_allowed(policies, bind.source, bind.writable ? Access::write : Access::read);
        if (!opened && opened.error().code == ENOENT && opened.error().hint.empty())
            return std::move(opened).error().within(what).with_hint(
                bind.source.ends_with('/') ? concat("make it first: mkdir -p ", bind.source)
                                           : "make it first: what is shown inside has to be there");
        UniqueFd source = TRY_IN(what, std::move(opened));
        TRY_IN(what, check_shown(source, bind.writable));
        std::vector<std::string> options = {"rbind", "rprivate", "rnosuid", "rnodev"};
        if (!bind.writable) options.emplace_back("rro");
        Mount& mount = config.spec.mounts.emplace_back(
            Mount{bind.destination, "bind", concat("/proc/self/fd/", source.get()), std::move(options), {}, {}});
        if (map_ids) {
            std::optional<MountMaps> maps = TRY(map_owner(source, config.spec, what));
            if (maps) mount.uid_mappings = std::move(maps->uids);
            if (maps) mount.gid_mappings = std::move(maps->gids);
        }
        config.sources.push_back(std::move(source));
    }
    return {};
}

Result<void> show_host(const SandboxJob& job, const Policies& policies, const User& user, JobConfig& config) {
    HostRoot host = job.root_template.empty() ? plan_host_root(user, job.network)
                                              : TRY(plan_template_root(job.root_template, policies, user, job.network));
    std::vector<std::string> paths;
    for (const Mount& mount : host.mounts) {
        TRY_IN("root", check_not_forbidden(policies, mount.source));
        paths.push_back(mount.source);
    }
    TRY_IN("root", check_apart_from_states(paths, policies.front().mounts.state_roots));
    config.root.skeleton = std::move(host.skeleton);
    std::ranges::move(host.sources, std::back_inserter(config.sources));
    std::vector<Mount>& mounts = config.spec.mounts;
    mounts.insert(mounts.begin(), host.mounts.begin(), host.mounts.end());
    return {};
}

// A root that its user may change is that user's, as far as it can be.
Result<void> give_root(const User& user, bool map_ids, JobConfig& config) {
    config.root.owner = MadeRoot::Owner{user.uid, user.gid};
    if (!config.root.over_directory || !map_ids) return {};
    const std::optional<MountMaps> maps = TRY(map_owner(config.root_source, config.spec, "--writable-root", true));
    if (maps) config.root.below = maps->ranges();
    return {};
}

Result<void> annotate_ports(std::string_view option, const std::string& ports, const char* name,
                            StringMap& annotations) {
    if (ports.empty()) return {};
    if (!parse_ports(ports))
        return plain_error(concat(option, ' ', quoted(ports), ": expected ports as in 80,443, or any, or none"));
    annotations[name] = ports;
    return {};
}

// On the host's own network a job has no business to listen, which older kernels cannot forbid.
Result<void> annotate_landlock(const SandboxJob& job, StringMap& annotations) {
    if (!job.landlock) {
        if (job.tcp_bind.empty() && job.tcp_connect.empty()) return {};
        return plain_error("--tcp-bind and --tcp-connect take Landlock, which --no-landlock switches off");
    }
    annotations[kLandlockAnnotation] = "true";
    const bool may_listen = job.network != Network::host || landlock_abi() < kLandlockTcp;
    TRY(annotate_ports("--tcp-bind", job.tcp_bind.empty() && !may_listen ? "none" : job.tcp_bind, kTcpBindAnnotation,
                       annotations));
    return annotate_ports("--tcp-connect", job.tcp_connect, kTcpConnectAnnotation, annotations);
}

Result<void> check_env(const std::vector<std::string>& env) {
    for (const std::string& one : env) {
        if (const size_t equals = one.find('='); equals != 0 && equals != one.npos) continue;
        return plain_error(concat("--env ", quoted(one), ": expected NAME=VALUE"));
    }
    return {};
}

Result<void> take_kept(const SandboxJob& job, const Policies& policies, bool can_map, JobConfig& config) {
    const KeptOwner owner = TRY(kept_owner());
    config.kept = TRY(KeptFiles::take(job.keep_files, policies, owner));
    TRY(config.kept->forget_script(job.script_name));
    return show_kept(can_map, config);
}

void set_up_init(const SandboxJob& job, bool stays, JobConfig& config) {
    SandboxInitPlan& init = config.sandbox_init;
    init.waits = !job.copy_in.empty() || !job.copy_out.empty() || !job.secrets.empty() || !job.cwd.empty() ||
                 !job.publish.empty() || job.network == Network::pasta || config.kept;
    if (!job.script_name.empty()) init.script_path = concat(kWorkspace, '/', job.script_name);
    init.script = job.script;
    // With a command, a monitor stays with it; without one there is nothing to tell, and nobody who has to live for it.
    init.payload = !stays || !config.spec.process->args.empty();
    init.alone = !init.payload;
    if (init.alone) init.lifetime = job.lifetime;
    else if (stays) init.deadline = job.lifetime;
    else init.deadline = timeout_of(job);
}

}  // namespace

std::string option_of(const HostBind& bind) {
    return concat(bind.writable ? "--bind " : "--ro-bind ", quoted(bind.source));
}

std::string profile_of(const SandboxJob& job) {
    if (!job.seccomp.empty()) return job.seccomp;
    return job.network == Network::none ? "default" : "network";
}

// Files that the job makes in a directory of the host's are, outside, its owner's, often root's.
Seccomp profile_beside_binds(const SandboxJob& job, Seccomp profile) {
    const bool writes = std::ranges::any_of(job.binds, &HostBind::writable) || !job.keep_files.empty();
    return writes ? without_set_id_bits(std::move(profile)) : profile;
}

Result<JobConfig> build_config(const SandboxJob& job, const Policies& policies, const HostFacts& host,
                               const std::string& id, bool stays) {
    TRY(check_resource_limits(job.limits));
    TRY(check_keeping(job, stays));
    const std::vector<HostBind> binds = TRY(in_order(job.binds));
    // Before anything is opened: what is to be mounted has to be of the mount namespace that mounts it.
    std::optional<Scratch> scratch;
    if (!job.scratch.empty()) scratch.emplace(TRY(Scratch::open(job.scratch, policies)));
    JobConfig config;
    GenerateOptions options;
    options.args = job.command;
    TRY(check_env(job.env));
    options.env = job.env;
    options.user = TRY(parse_user(job.user));
    const UniqueFd profile = TRY_IN("--seccomp", open_profile_allowed(policies, profile_of(job)));
    options.seccomp = TRY(find_profile(profile ? concat("/proc/self/fd/", profile.get()) : profile_of(job)));
    // The socket would be connected to with our rights.
    if (profile && !options.seccomp.listener_path.empty()) {
        return Error{kPolicyRefusal, "--seccomp: policy: listenerPath: a socket of the caller's is not connected to",
                     "leave out listenerPath"};
    }
    TRY(map_ids(host, id, options));
    TRY(find_root(job, policies, options, config));
    if (!job.cwd.empty()) options.cwd = job.cwd.starts_with('/') ? job.cwd : concat(kWorkspace, '/', job.cwd);
    ResourceLimits limits = job.limits;
    limits.network_enabled = job.network == Network::host;
    // A root that can be written to takes its half of the disk.
    const uint64_t root_share = job.writable_root ? limits.disk_mb / 2 : 0;
    limits.disk_mb -= root_share;
    config.spec = generate(limits, options);
    config.spec.process->terminal = job.terminal;
    config.spec.root.readonly = !job.writable_root;
    config.spec.annotations[kSandboxAnnotation] = "true";
    if (job.strict) config.spec.annotations[kStrictAnnotation] = "true";
    TRY(annotate_landlock(job, config.spec.annotations));
    const auto annotate_time = [&](const char* name, const std::optional<std::chrono::nanoseconds>& time) {
        if (!time) return;
        config.spec.annotations[name] = std::to_string(std::chrono::ceil<std::chrono::seconds>(*time).count());
    };
    annotate_time(kIdleAnnotation, job.idle_timeout);
    annotate_time(kLifetimeAnnotation, job.lifetime);
    // Its network is its own: who serves on port 80 there takes it from nobody. Other kernels have no such setting.
    if (job.network != Network::host && job.runtime.empty())
        config.spec.linux_.sysctl["net.ipv4.ip_unprivileged_port_start"] = "0";
    TRY(fall_back_to_rlimits(job, host, config.spec));
    config.root.size = std::max(root_share * kMegabyte, kSmallRoot);
    config.root.over_directory = !config.root_path.empty();
    if (!config.root.over_directory) TRY(show_host(job, policies, options.user, config));
    const bool can_map = !host.is_rootless() && job.runtime.empty();
    if (job.writable_root) TRY(give_root(options.user, can_map, config));
    TRY(add_binds(binds, policies, can_map, config));
    if (scratch) TRY(move_to_disk(*scratch, config));
    if (!job.keep_files.empty()) TRY(take_kept(job, policies, can_map, config));
    config.spec.linux_.seccomp = profile_beside_binds(job, std::move(*config.spec.linux_.seccomp));
    set_up_init(job, stays, config);
    return config;
}

std::chrono::nanoseconds timeout_of(const SandboxJob& job) {
    const std::chrono::duration<double> seconds(job.limits.timeout_seconds);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(seconds);
}

}  // namespace pinfold
