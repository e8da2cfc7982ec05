// From JSON to typed configuration, but for resources, which have a file of their own.
#include "spec/parse.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "spec/resources.hpp"
#include "spec/validate.hpp"
#include "spec/words.hpp"

namespace pinfold {

static void read(const Reader& object, IdMapping& mapping) {
    object.required("containerID", mapping.container_id);
    object.required("hostID", mapping.host_id);
    object.required("size", mapping.size);
}

// The process section, which is also a document of its own for exec.

static void read(const Reader& object, ConsoleSize& size) {
    object.required("height", size.height);
    object.required("width", size.width);
}

static void read(const Reader& object, User& user) {
    object.optional("uid", user.uid);
    object.optional("gid", user.gid);
    object.optional("umask", user.umask);
    object.optional("additionalGids", user.additional_gids);
}

static void read(const Reader& object, Capabilities& capabilities) {
    object.optional("bounding", capabilities.bounding);
    object.optional("effective", capabilities.effective);
    object.optional("permitted", capabilities.permitted);
    object.optional("inheritable", capabilities.inheritable);
    object.optional("ambient", capabilities.ambient);
}

static void read(const Reader& object, Rlimit& rlimit) {
    object.required("type", rlimit.type);
    object.required("soft", rlimit.soft);
    object.required("hard", rlimit.hard);
}

static void read(const Reader& object, IoPriority& io_priority) {
    object.required("class", io_priority.io_class);
    object.optional("priority", io_priority.priority);
}

static void read(const Reader& object, Scheduler& scheduler) {
    object.required("policy", scheduler.policy);
    object.optional("nice", scheduler.nice);
    object.optional("priority", scheduler.priority);
    object.optional("flags", scheduler.flags);
    object.optional("runtime", scheduler.runtime);
    object.optional("deadline", scheduler.deadline);
    object.optional("period", scheduler.period);
}

static void read(const Reader& object, ExecCpuAffinity& affinity) {
    object.optional("initial", affinity.initial);
    object.optional("final", affinity.final);
}

static void read(const Reader& object, Process& process) {
    object.optional("terminal", process.terminal);
    object.optional("consoleSize", process.console_size);
    object.optional("user", process.user);
    object.optional("args", process.args);
    object.optional("env", process.env);
    object.required("cwd", process.cwd);
    object.optional("capabilities", process.capabilities);
    object.optional("rlimits", process.rlimits);
    object.optional("noNewPrivileges", process.no_new_privileges);
    object.optional("apparmorProfile", process.apparmor_profile);
    object.optional("selinuxLabel", process.selinux_label);
    object.optional("oomScoreAdj", process.oom_score_adj);
    object.optional("ioPriority", process.io_priority);
    object.optional("scheduler", process.scheduler);
    object.optional("execCPUAffinity", process.exec_cpu_affinity);
}

Process parse_process(const Json& root, Problems& problems) {
    Process process;
    Reader(root, problems, nullptr).into(process);
    return process;
}

// The seccomp section.

static void read(const Reader& object, SyscallArg& arg) {
    object.required("index", arg.index);
    object.required("value", arg.value);
    object.optional("valueTwo", arg.value_two);
    object.required("op", arg.op);
}

static void read(const Reader& object, SyscallRule& rule) {
    object.required("names", rule.names);
    object.required("action", rule.action);
    object.optional("errnoRet", rule.errno_ret);
    object.optional("args", rule.args);
}

void read(const Reader& object, Seccomp& seccomp) {
    object.required("defaultAction", seccomp.default_action);
    object.optional("defaultErrnoRet", seccomp.default_errno_ret);
    object.optional("flags", seccomp.flags);
    object.optional("listenerPath", seccomp.listener_path);
    object.optional("listenerMetadata", seccomp.listener_metadata);
    object.optional("architectures", seccomp.architectures);
    object.optional("syscalls", seccomp.syscalls);
}

// The linux section.

namespace {

constexpr auto kNamespaceTypes = std::to_array<Choice<NamespaceType>>({{"mount", NamespaceType::mount},
                                                                       {"pid", NamespaceType::pid},
                                                                       {"network", NamespaceType::network},
                                                                       {"uts", NamespaceType::uts},
                                                                       {"ipc", NamespaceType::ipc},
                                                                       {"user", NamespaceType::user},
                                                                       {"cgroup", NamespaceType::cgroup},
                                                                       {"time", NamespaceType::time}});

constexpr auto kDeviceTypes = std::to_array<Choice<char>>({{"c", 'c'}, {"b", 'b'}, {"u", 'u'}, {"p", 'p'}});

}  // namespace

static void read(const Reader& object, Namespace& ns) {
    object.required_choice("type", ns.type, kNamespaceTypes);
    object.optional("path", ns.path);
}

static void read(const Reader& object, TimeOffset& offset) {
    object.optional("secs", offset.secs);
    object.optional("nanosecs", offset.nanosecs);
}

static void read(const Reader& object, Device& device) {
    object.required("path", device.path);
    object.required_choice("type", device.type, kDeviceTypes);
    if (device.type != 'p') {  // a FIFO has no numbers
        object.required("major", device.major);
        object.required("minor", device.minor);
    }
    object.optional("fileMode", device.file_mode);
    object.optional("uid", device.uid);
    object.optional("gid", device.gid);
}

static void read(const Reader& object, NetDevice& device) { object.optional("name", device.name); }

static void read(const Reader& object, IntelRdt& rdt) {
    object.optional("closID", rdt.clos_id);
    object.optional("schemata", rdt.schemata);
    object.optional("l3CacheSchema", rdt.l3_cache_schema);
    object.optional("memBwSchema", rdt.mem_bw_schema);
    object.optional("enableMonitoring", rdt.enable_monitoring);
}

static void read(const Reader& object, MemoryPolicy& policy) {
    object.required("mode", policy.mode);
    object.optional("nodes", policy.nodes);
    object.optional("flags", policy.flags);
}

static void read(const Reader& object, Personality& personality) {
    object.required("domain", personality.domain);
    object.optional("flags", personality.flags);
}

static void read(const Reader& object, Linux& linux_) {
    object.optional("namespaces", linux_.namespaces);
    object.optional("uidMappings", linux_.uid_mappings);
    object.optional("gidMappings", linux_.gid_mappings);
    object.optional("timeOffsets", linux_.time_offsets);
    object.optional("devices", linux_.devices);
    object.optional("netDevices", linux_.net_devices);
    object.optional("cgroupsPath", linux_.cgroups_path);
    object.optional("resources", linux_.resources);
    object.optional("rootfsPropagation", linux_.rootfs_propagation);
    object.optional("seccomp", linux_.seccomp);
    object.optional("sysctl", linux_.sysctl);
    object.optional("maskedPaths", linux_.masked_paths);
    object.optional("readonlyPaths", linux_.readonly_paths);
    object.optional("mountLabel", linux_.mount_label);
    object.optional("intelRdt", linux_.intel_rdt);
    object.optional("memoryPolicy", linux_.memory_policy);
    object.optional("personality", linux_.personality);
}

std::vector<std::string_view> namespace_types() {
    std::vector<std::string_view> words;
    for (const Choice<NamespaceType>& type : kNamespaceTypes) words.push_back(type.word);
    return words;
}

// The top of config.json: version, root, mounts, hooks.

static void read(const Reader& object, Root& root) {
    object.required("path", root.path);
    object.optional("readonly", root.readonly);
}

static void read(const Reader& object, Mount& mount) {
    object.required("destination", mount.destination);
    object.optional("type", mount.type);
    object.optional("source", mount.source);
    object.optional("options", mount.options);
    object.optional("uidMappings", mount.uid_mappings);
    object.optional("gidMappings", mount.gid_mappings);
}

static void read(const Reader& object, Hook& hook) {
    object.required("path", hook.path);
    object.optional("args", hook.args);
    object.optional("env", hook.env);
    object.optional("timeout", hook.timeout);
}

static void read(const Reader& object, Hooks& hooks) {
    for (const HookKind& kind : kHookKinds) object.optional(kind.name, hooks.*kind.list);
}

// "1.2.1-rc.1": 2. What is no version is said elsewhere.
static unsigned minor_version(std::string_view version) {
    const std::vector<std::string_view> numbers = split(version, '.');
    return numbers.size() < 2 ? 0 : parse_number<unsigned>(numbers[1]).value_or(0);
}

// A limit of 0 processes is one since 1.3. Before, it was how engines said that there is none.
static void read_by_version(Spec& spec) {
    std::optional<int64_t>& limit = spec.linux_.resources.pids_limit;
    if (limit == 0 && minor_version(spec.oci_version) < 3) limit = -1;
}

static void read(const Reader& object, Spec& spec) {
    object.required("ociVersion", spec.oci_version);
    object.optional("root", spec.root);
    object.optional("mounts", spec.mounts);
    object.optional("process", spec.process);
    object.optional("hostname", spec.hostname);
    object.optional("domainname", spec.domainname);
    object.optional("hooks", spec.hooks);
    object.optional("annotations", spec.annotations);
    object.optional("linux", spec.linux_);
    read_by_version(spec);
}

Spec parse_spec(Json&& root, Problems& problems) {
    Json tree = std::move(root);
    Spec spec;
    Reader(std::move(tree), problems).into(spec);
    return spec;
}

Spec parse_spec(const Json& root, Problems& problems, std::set<std::string>* consumed) {
    Spec spec;
    Reader(root, problems, consumed).into(spec);
    return spec;
}

// What the specification has and pinfold does not do yet.

namespace {

constexpr auto kUnsupported = std::to_array<Unsupported>({
    {"linux.intelRdt", "classes of service are not assigned"},
});

constexpr auto kOtherPlatforms = std::to_array<std::string_view>(
    {"freebsd", "solaris", "vm", "windows", "zos", "process.commandLine", "process.user.username"});

// An empty object among the members is in use: it stands for something that the map names.
bool in_use(const Json& json);

bool member_in_use(const Json::Member& member) { return member.value.object() || in_use(member.value); }

bool in_use(const Json& json) {
    switch (json.kind()) {
        case Json::Kind::null: return false;
        case Json::Kind::boolean: return *json.boolean();
        case Json::Kind::integer: return *json.integer() != 0;
        case Json::Kind::unsigned_integer: return *json.unsigned_integer() != 0;
        case Json::Kind::real: return *json.real() != 0;
        case Json::Kind::string: return !json.string()->empty();
        case Json::Kind::array: return !json.array()->empty();
        case Json::Kind::object: break;
    }
    return std::any_of(json.object()->begin(), json.object()->end(), member_in_use);
}

const Json* find_path(const Json& root, std::string_view path) {
    const Json* json = &root;
    for (const std::string_view key : split(path, '.')) {
        json = json->find(key);
        if (!json) return nullptr;
    }
    return json;
}

}  // namespace

std::span<const Unsupported> not_yet_supported() { return kUnsupported; }

bool is_supported(std::string_view path) {
    const auto covers = [path](const Unsupported& entry) {
        return path == entry.path || path.starts_with(concat(entry.path, '.'));
    };
    return std::none_of(kUnsupported.begin(), kUnsupported.end(), covers);
}

std::span<const std::string_view> other_platforms() { return kOtherPlatforms; }

void refuse_unsupported(const Json& root, Problems& problems, std::string_view at) {
    const std::string prefix = at.empty() ? std::string() : concat(at, '.');
    for (const Unsupported& entry : kUnsupported) {
        if (!entry.path.starts_with(prefix)) continue;
        const std::string_view path = entry.path.substr(prefix.size());
        const Json* json = find_path(root, path);
        if (json && in_use(*json)) problems.add(std::string(path), concat("not supported yet: ", entry.why));
    }
}

Result<std::string> read_config(const std::string& path) {
    Result<std::string> text = read_document(path);
    if (text || text.error().code != ENOENT) return text;
    return std::move(text).error().with_hint("run in a bundle directory, or name one with --bundle");
}

// What profiles of engines have and the specification does not: it has unknown properties ignored, and a rule of which
// somebody thinks that it holds under a condition holds always.
static void tell_ignored_conditions(const Json& root, const std::string& name) {
    const Json* rules = find_path(root, "linux.seccomp.syscalls");
    for (size_t i = 0; rules && rules->array() && i < rules->array()->size(); ++i) {
        for (const char* key : {"includes", "excludes"}) {
            const Json* condition = (*rules->array())[i].find(key);
            if (!condition || !in_use(*condition)) continue;
            return log_warning(concat(name, ": ", member_path(element_path("linux.seccomp.syscalls", i), key),
                                      ": not of the runtime specification, and ignored: the rule holds always"));
        }
    }
}

// An unknown annotation is no error, says the specification; one of ours that is misspelt is a layer less.
static void tell_unknown_annotations(const StringMap& annotations, const std::string& name) {
    constexpr std::string_view kPrefix = "org.pinfold.";
    static constexpr auto kKnown =
        std::to_array<std::string_view>({"sandbox", "strict", "landlock", "landlock.tcp-bind", "landlock.tcp-connect",
                                         "idle-timeout", "lifetime", "published", "oom-killed", "bound", "kept-files"});
    for (const auto& [key, value] : annotations) {
        if (!key.starts_with(kPrefix) || std::ranges::find(kKnown, key.substr(kPrefix.size())) != kKnown.end())
            continue;
        log_warning(concat(name, ": ", member_path("annotations", key), ": not known, and ignored"));
    }
}

Result<Spec> parse_config(std::string_view text, const std::string& name, const std::string& bundle) {
    Json root = TRY(parse_json(text, name));
    tell_ignored_conditions(root, name);
    Problems problems, unsupported;
    refuse_unsupported(root, unsupported);
    Spec spec = parse_spec(std::move(root), problems);
    validate_spec(spec, problems);
    validate_bundle(spec, bundle, problems);
    for (const Problem& item : unsupported.items()) problems.add(item.path, item.message);
    if (!problems.empty()) return to_error(problems, name);
    tell_unknown_annotations(spec.annotations, name);
    return spec;
}

Result<Spec> parse_checked_config(std::string_view text) {
    Json root = TRY(parse_json(text, "the container's config.json"));
    Problems problems;
    Spec spec = parse_spec(std::move(root), problems);
    if (!problems.empty()) return to_error(problems, "the container's config.json");
    return spec;
}

Result<Process> load_process(const std::string& path) {
    const std::string text = TRY(read_document(path));
    const Json root = TRY(parse_json(text, path));
    Problems problems;
    Process process = parse_process(root, problems);
    validate_process(process, "", problems);
    refuse_unsupported(root, problems, "process");
    if (!problems.empty()) return to_error(problems, path);
    return process;
}

}  // namespace pinfold
