// A job that is ready to be launched.
#include "sandbox/prepare_job.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "kernel/safe_path.hpp"
#include "kernel/surroundings.hpp"
#include "pinfold/generate.hpp"
#include "policy/check_request.hpp"
#include "policy/host_path.hpp"
#include "process/supervise.hpp"
#include "sandbox/audit_job.hpp"
#include "sandbox/monitor.hpp"
#include "seccomp/cache.hpp"
#include "seccomp/reporting.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// One that has ended takes room as long as what it has printed is kept.
bool takes_room(const std::string& root, const ContainerState& state) {
    return state.status != Status::stopped || open_state_file(root, state.record.id, kOutputFile, O_RDONLY);
}

// Those of this state root that run, or are about to, or have left something.
Result<uint64_t> count_sandboxes(const std::string& root, const std::string& but) {
    const std::vector<ContainerState> states = TRY(load_all_states(root));
    return std::ranges::count_if(states, [&](const ContainerState& state) {
        return state.record.annotations.contains(kSandboxAnnotation) && state.record.id != but &&
               takes_room(root, state) && !is_abandoned(root, state);
    });
}

std::vector<HostPort> asked_ports(const SandboxJob& job) {
    std::vector<HostPort> ports;
    for (const PublishedPort& port : job.publish) ports.push_back({port.address, port.host});
    return ports;
}

std::vector<PublishedPort> ports_of(const std::vector<Listener>& listeners) {
    std::vector<PublishedPort> ports;
    for (const Listener& listener : listeners) ports.push_back(listener.port);
    return ports;
}

// A policy speaks of whole seconds: what is above one by a fraction is above it.
SandboxRequest request_of(const SandboxJob& job) {
    static constexpr const char* kNetworks[] = {"none", "host", "pasta"};
    const ResourceLimits& limits = job.limits;
    return {.limits = {limits.cpu_cores, limits.memory_mb, limits.disk_mb, limits.max_processes,
                       static_cast<uint64_t>(std::ceil(limits.timeout_seconds))},
            .network = kNetworks[size_t(job.network)],
            .profile = profile_of(job),
            .ports = asked_ports(job)};
}

// In a directory of its own a caller would start to count anew.
Result<void> check_count_root(const Policies& policies, const std::string& state_root) {
    const auto counts = [](const Policy& policy) { return policy.max_sandboxes && policy.is_system(); };
    if (std::ranges::none_of(policies, counts) || state_root == default_state_root()) return {};
    return Error{
        kPolicyRefusal,
        concat("policy: max_sandboxes: only those in ", default_state_root(), " are counted, not in ", state_root),
        "leave out --root"};
}

Result<PreparedJob> prepare(const std::string& id, const SandboxJob& job, const SandboxSetting& setting, bool stays) {
    const Policies policies = for_sandboxes(setting.policies, setting.state_root, setting.audit);
    TRY(check_count_root(policies, setting.state_root));
    TRY(check_request(policies, request_of(job)));
    std::vector<Listener> listeners = TRY(open_listeners(job));
    Transfers transfers = TRY(Transfers::open(job, policies));
    const HostFacts host = TRY(gather_host_facts());
    JobConfig config = TRY(build_config(job, policies, host, id, stays));
    // Over whatever else is at that place.
    if (std::optional<Mount> secrets = transfers.secrets_mount(config.spec.process->user))
        config.spec.mounts.push_back(std::move(*secrets));
    if (setting.bound) config.spec.annotations[kBoundAnnotation] = "true";
    if (!listeners.empty()) config.spec.annotations[kPublishedAnnotation] = published_annotation(ports_of(listeners));
    const Seccomp profile = setting.recorder != nullptr ? profile_beside_binds(job, setting.recorder->watched())
                                                        : *config.spec.linux_.seccomp;
    SandboxParts parts{.root = config.root, .init = config.sandbox_init};
    if (config.root.over_directory) parts.root_path = concat("/proc/self/fd/", config.root_source.get());
    parts.profile = config.sandbox_init.alone ? profile : with_reporting(profile);
    Plan plan = TRY(make_plan(config.spec,
                              {.id = id,
                               .bundle = "/",
                               .cgroup_manager = setting.cgroup_manager,
                               .receipt = true,
                               .sandbox = std::move(parts)},
                              host));
    TRY(require_state_root(setting.state_root));  // whoever could change it could change the filters that it holds
    SeccompFilter filter = TRY_IN("seccomp", compile_seccomp_cached(profile, seccomp_cache(setting)));
    Result<JobStreams> streams =
        make_streams({job.input, job.capture, job.tee, job.merge_output, job.output_limit, plan.stream_owner});
    if (!streams) return explain_start(std::move(streams).error(), look_around());
    // Other runtimes give the streams to the job's user, and /dev/null is everybody's.
    if (!job.runtime.empty() && job.input < 0) streams->streams.in = TRY(make_pipe("the input")).from;
    return PreparedJob{.config = std::move(config),
                       .plan = std::move(plan),
                       .filter = std::move(filter),
                       .transfers = std::move(transfers),
                       .audit = {},
                       .streams = std::move(streams).value(),
                       .inside = {},
                       .published = ports_of(listeners),
                       .forwarder = listeners.empty() ? SeccompFilter() : TRY(forwarder_filter()),
                       .listeners = std::move(listeners)};
}

}  // namespace

// Of a program in a directory that is bound, as one of a virtual environment: where it leads to, if that is a link, is
// not inside, or it would have been found.
static std::string lost_link(const std::string& program, const std::vector<HostBind>& binds) {
    constexpr int kMostLinks = 8;
    for (const HostBind& bind : binds) {
        const std::string place = plain_path(bind.destination);
        Result<UniqueFd> top = open_at(AT_FDCWD, bind.source, O_PATH | O_DIRECTORY);
        if (!top || !is_within(plain_path(program), place)) continue;
        const RootFd shown(std::move(*top));
        std::string path = plain_path(program).substr(place.size());
        for (int i = 0; i < kMostLinks; ++i) {
            const Result<UniqueFd> link = shown.open(path, O_PATH | O_NOFOLLOW);
            const std::string target = link ? link_target("", link->get()) : "";
            if (target.empty()) break;
            const std::string directory = target.substr(0, target.rfind('/'));
            if (target.starts_with('/'))
                return concat("it is a link to ", target, ", which is not inside: show that as well, by --ro-bind ",
                              directory.ends_with("/bin") ? directory.substr(0, directory.size() - 4) : directory);
            path = concat(path.substr(0, path.rfind('/') + 1), target);
        }
    }
    return {};
}

// Whoever names a program by its path may have taken the sandbox's files for their own. Whether there is such a file
// outside is not looked at: it may be none of the caller's business.
static Error explain_missing_program(Error error, const SandboxJob& job) {
    const std::vector<std::string>& command = job.command;
    const bool is_program = error.code == ENOENT && error.message.starts_with("executable: ") && error.hint.empty();
    for (const HostBind& bind : job.binds) {
        const std::string place = plain_path(bind.destination);
        if (!is_program || !is_within("/usr/bin", place)) continue;
        return std::move(error).with_hint(concat(quoted(bind.source), " lies over ", place,
                                                 ", where programs are: give it another place, by --bind ", bind.source,
                                                 ":/workspace"));
    }
    if (!is_program || command.empty() || command[0].find('/') == std::string::npos) return error;
    const std::string& program = command[0];
    if (std::string hint = lost_link(program, job.binds); !hint.empty()) return std::move(error).with_hint(hint);
    const bool absolute = program.starts_with('/');
    const size_t slash = program.rfind('/');
    const std::string copy =
        absolute ? concat(program, ":/workspace/ -- .", program.substr(slash)) : concat(program, ':', program);
    const std::string bind = absolute ? program.substr(0, std::max<size_t>(slash, 1)) : ".:/workspace";
    return std::move(error).with_hint(concat("no file of yours is inside by itself: give it a copy, by --copy-in ",
                                             copy, ", or the directory, by --bind ", bind));
}

static Error explain_program(Error error, const SandboxJob& job) {
    if (error.code == EACCES && error.message.starts_with("executable: ") && error.hint.empty())
        return std::move(error).with_hint(
            "a program is a file with an x bit (chmod +x), and no directory; a script is also run by naming its "
            "interpreter before it");
    return explain_missing_program(std::move(error), job);
}

// The place in a configuration that was made up says nothing to who has named an option.
static Error name_option(Error error, const SandboxJob& job) {
    if (!error.message.starts_with("mounts[")) return error;
    for (const HostBind& bind : job.binds) {
        const std::string place = concat("] ", plain_path(bind.destination), ": ");
        const size_t found = error.message.find(place);
        if (found == std::string::npos || found > error.message.find(' ')) continue;
        error.message = concat(option_of(bind), ": ", plain_path(bind.destination), ": ",
                               error.message.substr(found + place.size()));
        const auto holds_it = [&](const HostBind& other) {
            return &other != &bind && is_within(plain_path(bind.destination), plain_path(other.destination));
        };
        if (std::ranges::any_of(job.binds, holds_it)) return error;  // its hint is of use
        return std::move(error).with_hint(concat("give it another place inside, as below ", kWorkspace));
    }
    return error;
}

void NetworkHelpers::release() noexcept {
    if (pasta) pasta->release();
    if (forwarder) forwarder->release();
}

Result<RunningContainer> launch_job(const SandboxJob& job, PreparedJob& prepared, const LaunchOptions& options,
                                    const SignalForwarder& signals) {
    Result<RunningContainer> running = launch_container(container_of(prepared), options, signals);
    prepared.listeners.clear();
    if (!running) return name_option(explain_program(std::move(running).error(), job), job);
    return running;
}

std::string seccomp_cache(const SandboxSetting& setting) { return concat(setting.state_root, "/.seccomp"); }

Result<SandboxJob> with_name(SandboxJob job) {
    if (!job.name.empty()) return job;
    uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) return errno_error("make up a name: getrandom");
    job.name = concat("sandbox-", to_hex(sha256(std::to_string(number))).substr(0, 12));
    return job;
}

// What is about to be started is logged: if that cannot be, it is not.
Result<PreparedJob> prepare_job(const SandboxJob& job, const SandboxSetting& setting, bool stays) {
    TRY(check_container_id(job.name));
    AuditTrail trail = TRY(open_trail(setting.policies, setting.audit, setting.words));
    PreparedJob prepared = TRY(prepare(job.name, job, setting, stays));
    if (trail.is_on()) {
        hold_signals_until_exit();  // an event of its end will follow
        TRY(trail.append(job_event(job, job.name, config_json(prepared.config.spec))));
    }
    prepared.audit = std::move(trail);
    return prepared;
}

Result<UniqueFd> take_place(const SandboxSetting& setting, const std::string& name) {
    const auto counts = [](const Policy& policy) { return policy.max_sandboxes.has_value(); };
    if (std::ranges::none_of(setting.policies, counts)) return UniqueFd();
    UniqueFd turn = TRY(take_turn(setting.state_root));
    const uint64_t running = TRY(count_sandboxes(setting.state_root, setting.again ? name : ""));
    TRY(check_count(setting.policies, running));
    return turn;
}

NewContainer container_of(const PreparedJob& job) {
    const Spec& spec = job.config.spec;
    ContainerRecord record = make_record(job.plan, spec, spec.annotations);
    if (!job.config.root_path.empty()) record.rootfs = job.config.root_path;
    return {job.plan, std::move(record), config_json(spec)};
}

namespace {

// Held from before the program starts on, however that ends: the files of a sandbox outlive its processes then.
Result<InsideOf> inside_of_sandbox_init(pid_t sandbox_init, const Plan& plan) {
    const uint64_t started = TRY(process_start_time(sandbox_init));
    InsideOf inside{sandbox_init, started, true, plan.process.identity, plan.process.cwd, {}};
    inside.way = std::make_shared<WayInside>(TRY(open_way(inside)));
    return inside;
}

// What the sandbox has for itself, unless a directory of the host's is bound there. By its name alone, as it may not be
// there yet.
bool is_private(const std::string& path, const std::vector<HostBind>& binds) {
    if (concat(path, '/').find("/../") != std::string::npos) return false;
    const std::string plain = plain_path(path);
    const auto holds_it = [&](const std::string& directory) { return is_within(plain, plain_path(directory)); };
    return (holds_it(kWorkspace) || holds_it("/tmp")) && std::ranges::none_of(binds, holds_it, &HostBind::destination);
}

// Once the files are there. One that is missing is a mistake: in an empty directory many a program finds nothing to do,
// and ends well.
Result<void> prepare_cwd(const SandboxJob& job, const InsideOf& inside) {
    Result<void> found = find_directory(inside, inside.cwd, false);
    if (!found && found.error().code == ENOENT && is_private(inside.cwd, job.binds)) {
        if (!job.copy_in.empty())
            log_warning(concat("--cwd ", quoted(inside.cwd), ": nothing was copied there; it is made, empty"));
        found = find_directory(inside, inside.cwd, true);
    }
    if (found || found.error().code == EACCES) return {};  // where it is, the payload may be put there nevertheless
    const int code = found.error().code;
    const char* reason = code == ENOENT ? " does not exist inside" : code == ENOTDIR ? " is no directory inside" : "";
    if (*reason == 0) return Error(found.error()).within(concat("--cwd ", quoted(inside.cwd)));
    const auto holds_it = [&](const HostBind& bind) { return is_within(inside.cwd, plain_path(bind.destination)); };
    return plain_error(concat("--cwd: ", quoted(inside.cwd), reason))
        .with_hint(std::ranges::any_of(job.binds, holds_it)
                       ? "make it first, in the directory that is bound there"
                       : "bring it there, by --copy-in or --bind; below /workspace and /tmp it is made");
}

}  // namespace

LaunchOptions launch_options(const SandboxJob& job, PreparedJob& prepared, const SandboxSetting& setting,
                             NetworkHelpers& network) {
    LaunchOptions options{.state_root = setting.state_root, .again = setting.again, .argv = setting.argv};
    if (!job.terminal) options.streams = &prepared.streams.streams;
    options.child.seccomp_cache = seccomp_cache(setting);
    options.before_state = [&setting, &job] { return take_place(setting, job.name); };
    options.before_start = [&job, &prepared, &network](const Child& sandbox_init) -> Result<void> {
        if (prepared.config.kept) TRY(prepared.config.kept->record(job.name, sandbox_init.pid()));
        if (job.network == Network::pasta) network.pasta.emplace(TRY(Pasta::start(sandbox_init)));
        prepared.inside = TRY(inside_of_sandbox_init(sandbox_init.pid(), prepared.plan));
        if (!prepared.listeners.empty()) {
            network.forwarder.emplace(
                TRY(Forwarder::start(sandbox_init, prepared.inside, prepared.listeners, prepared.forwarder)));
        }
        const UniqueFd interrupt = TRY(open_end_signals());
        TRY(prepared.transfers.copy_in(prepared.inside, {.interrupt = interrupt.get()}));
        return job.cwd.empty() ? Result<void>() : prepare_cwd(job, prepared.inside);
    };
    options.on_receipt = [&job, &prepared](const Receipt& receipt) -> Result<void> {
        if (prepared.audit.is_on()) append_or_warn(prepared.audit, receipt_event(prepared.plan.id, receipt));
        return job.strict ? require(receipt) : Result<void>();
    };
    return options;
}

}  // namespace pinfold
