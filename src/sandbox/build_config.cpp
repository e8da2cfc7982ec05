// From a job to a container.
#include "sandbox/build_config.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/fs.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "pinfold/generate.hpp"
#include "policy/check_request.hpp"
#include "sandbox/host_root.hpp"
#include "sandbox/rlimit_fallback.hpp"
#include "sandbox/template_root.hpp"
#include "seccomp/profiles.hpp"
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
// power over another. A normal user has one id to give, and it is the payload's.
void map_ids(const HostFacts& host, const std::string& id, GenerateOptions& options) {
    if (!host.is_root()) {
        options.uid_mappings = {{options.user.uid, host.uid, 1}};
        options.gid_mappings = {{options.user.gid, host.gid, 1}};
        return;
    }
    constexpr uint32_t kRanges = 4096;
    const Sha256Digest digest = sha256(id);
    const uint32_t range = (uint32_t{digest[0]} << 8 | digest[1]) % kRanges;
    const IdMapping map{0, kSandboxIds + range * kSandboxIdCount, kSandboxIdCount};
    options.uid_mappings = options.gid_mappings = {map};
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

// By descriptor: what was looked at is what is mounted, whatever happens to its name meanwhile.
Result<void> add_binds(const std::vector<HostBind>& binds, const Policies& policies, JobConfig& config) {
    for (const HostBind& bind : binds) {
        const std::string what = concat(bind.writable ? "--bind " : "--ro-bind ", quoted(bind.source));
        if (!bind.destination.starts_with('/')) {
            return plain_error(concat(what, ": the destination ", quoted(bind.destination), " is not absolute"));
        }
        UniqueFd source =
            TRY_IN(what, open_allowed(policies, bind.source, bind.writable ? Access::write : Access::read));
        TRY_IN(what, check_no_sockets(source.get()));
        std::vector<std::string> options = {"rbind", "rprivate", "rnosuid", "rnodev"};
        if (!bind.writable) options.emplace_back("rro");
        config.spec.mounts.push_back(
            {bind.destination, "bind", concat("/proc/self/fd/", source.get()), std::move(options), {}, {}});
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

}  // namespace

std::string profile_of(const SandboxJob& job) {
    if (!job.seccomp.empty()) return job.seccomp;
    return job.network == Network::none ? "default" : "network";
}

Result<void> check_env(const std::vector<std::string>& env) {
    for (const std::string& one : env) {
        if (const size_t equals = one.find('='); equals != 0 && equals != one.npos) continue;
        return plain_error(concat("--env ", quoted(one), ": expected NAME=VALUE"))
            .with_hint("nothing of your own environment is passed on");
    }
    return {};
}

Result<JobConfig> build_config(const SandboxJob& job, const Policies& policies, const HostFacts& host,
                               const std::string& id, bool stays) {
    TRY(check_resource_limits(job.limits));
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
    map_ids(host, id, options);
    TRY(find_root(job, policies, options, config));
    if (!job.cwd.empty()) options.cwd = job.cwd;
    ResourceLimits limits = job.limits;
    limits.network_enabled = job.network == Network::host;
    // A root that can be written to takes its half of the disk.
    const uint64_t root_share = job.writable_root ? limits.disk_mb / 2 : 0;
    limits.disk_mb -= root_share;
    config.spec = generate(limits, options);
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
    TRY(fall_back_to_rlimits(job, host, config.spec));
    config.root.size = std::max(root_share * kMegabyte, kSmallRoot);
    config.root.over_directory = !config.root_path.empty();
    if (!config.root.over_directory) TRY(show_host(job, policies, options.user, config));
    TRY(add_binds(job.binds, policies, config));
    config.sandbox_init.waits = !job.copy_in.empty() || job.network == Network::pasta;
    if (!job.script_name.empty()) config.sandbox_init.script_path = concat(kWorkspace, '/', job.script_name);
    config.sandbox_init.script = job.script;
    config.sandbox_init.alone = stays;
    config.sandbox_init.payload = !stays || !config.spec.process->args.empty();
    if (stays) config.sandbox_init.lifetime = job.lifetime;
    else config.sandbox_init.deadline = timeout_of(job);
    return config;
}

std::chrono::nanoseconds timeout_of(const SandboxJob& job) {
    const std::chrono::duration<double> seconds(job.limits.timeout_seconds);
    return std::chrono::duration_cast<std::chrono::nanoseconds>(seconds);
}

}  // namespace pinfold
