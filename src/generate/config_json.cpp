// A typed configuration as config.json: the way back of the parser, for what generate() makes.
#include <utility>

#include "base/strings.hpp"
#include "pinfold/generate.hpp"
#include "spec/json.hpp"

namespace pinfold {

static Json to_json(bool value) { return {value}; }
static Json to_json(const std::string& value) { return {value}; }
template <std::integral Number>
requires(!std::same_as<Number, bool>) static Json to_json(Number value) {
    if (std::signed_integral<Number> && value < 0) return {static_cast<int64_t>(value)};
    return {static_cast<uint64_t>(value)};
}

template <class Value>
static Json to_json(const std::vector<Value>& values) {
    Json::Array items;
    for (const Value& value : values) items.push_back(to_json(value));
    return {std::move(items)};
}

// Members in the order in which they are added; what is not set is left out.
class ConfigObject {
public:
    template <class Value>
    ConfigObject& add(std::string key, const Value& value) {
        members_.push_back({std::move(key), to_json(value)});
        return *this;
    }
    template <class Value>
    ConfigObject& add(std::string key, const std::optional<Value>& value) {
        return value ? add(std::move(key), *value) : *this;
    }
    template <class Value>
    ConfigObject& add_unless_empty(std::string key, const Value& value) {
        return value.empty() ? *this : add(std::move(key), value);
    }
    ConfigObject& add(std::string key, Json value) {
        members_.push_back({std::move(key), std::move(value)});
        return *this;
    }
    Json json() { return {std::move(members_)}; }

private:
    Json::Object members_;
};

static Json to_json(const User& user) {
    return ConfigObject()
        .add("uid", user.uid)
        .add("gid", user.gid)
        .add("umask", user.umask)
        .add_unless_empty("additionalGids", user.additional_gids)
        .json();
}

// All five, also where they are empty: a set that is left out has another meaning to some.
static Json to_json(const Capabilities& sets) {
    return ConfigObject()
        .add("bounding", sets.bounding)
        .add("effective", sets.effective)
        .add("permitted", sets.permitted)
        .add("inheritable", sets.inheritable)
        .add("ambient", sets.ambient)
        .json();
}

static Json to_json(const Rlimit& limit) {
    return ConfigObject().add("type", limit.type).add("soft", limit.soft).add("hard", limit.hard).json();
}

static Json to_json(const Process& process) {
    return ConfigObject()
        .add("terminal", process.terminal)
        .add("user", process.user)
        .add("args", process.args)
        .add("env", process.env)
        .add("cwd", process.cwd)
        .add("capabilities", process.capabilities)
        .add("rlimits", process.rlimits)
        .add("noNewPrivileges", process.no_new_privileges)
        .add("oomScoreAdj", process.oom_score_adj)
        .json();
}

static Json to_json(const Root& root) {
    return ConfigObject().add("path", root.path).add("readonly", root.readonly).json();
}

static Json to_json(const Mount& mount) {
    return ConfigObject()
        .add("destination", mount.destination)
        .add_unless_empty("type", mount.type)
        .add_unless_empty("source", mount.source)
        .add("options", mount.options)
        .json();
}

static Json to_json(const Namespace& one) {
    static constexpr const char* kNames[] = {"mount", "pid", "network", "uts", "ipc", "user", "cgroup", "time"};
    return ConfigObject().add("type", std::string(kNames[size_t(one.type)])).add_unless_empty("path", one.path).json();
}

static Json to_json(const IdMapping& mapping) {
    return ConfigObject()
        .add("containerID", mapping.container_id)
        .add("hostID", mapping.host_id)
        .add("size", mapping.size)
        .json();
}

static Json to_json(const DeviceRule& rule) {
    return ConfigObject().add("allow", rule.allow).add("access", rule.access).json();
}

static Json to_json(const Resources& resources) {
    const MemoryLimits& memory = resources.memory;
    const CpuLimits& cpu = resources.cpu;
    ConfigObject object;
    object.add("devices", resources.devices);
    if (memory.limit) object.add("memory", ConfigObject().add("limit", memory.limit).add("swap", memory.swap).json());
    if (cpu.quota) {
        object.add("cpu",
                   ConfigObject().add("shares", cpu.shares).add("quota", cpu.quota).add("period", cpu.period).json());
    }
    if (resources.pids_limit) object.add("pids", ConfigObject().add("limit", resources.pids_limit).json());
    return object.json();
}

static Json to_json(const SyscallArg& arg) {
    return ConfigObject()
        .add("index", arg.index)
        .add("value", arg.value)
        .add("valueTwo", arg.value_two)
        .add("op", arg.op)
        .json();
}

static Json to_json(const SyscallRule& rule) {
    return ConfigObject()
        .add("names", rule.names)
        .add("action", rule.action)
        .add("errnoRet", rule.errno_ret)
        .add_unless_empty("args", rule.args)
        .json();
}

static Json to_json(const Seccomp& seccomp) {
    return ConfigObject()
        .add("defaultAction", seccomp.default_action)
        .add("defaultErrnoRet", seccomp.default_errno_ret)
        .add_unless_empty("architectures", seccomp.architectures)
        .add_unless_empty("flags", seccomp.flags)
        .add("syscalls", seccomp.syscalls)
        .json();
}

static Json to_json(const Linux& config) {
    return ConfigObject()
        .add("namespaces", config.namespaces)
        .add_unless_empty("uidMappings", config.uid_mappings)
        .add_unless_empty("gidMappings", config.gid_mappings)
        .add_unless_empty("cgroupsPath", config.cgroups_path)
        .add("resources", config.resources)
        .add("maskedPaths", config.masked_paths)
        .add("readonlyPaths", config.readonly_paths)
        .add("seccomp", config.seccomp)
        .json();
}

std::string config_json(const Spec& spec) {
    ConfigObject annotations;
    for (const auto& [key, value] : spec.annotations) annotations.add(key, value);
    ConfigObject config;
    config.add("ociVersion", spec.oci_version)
        .add("process", spec.process)
        .add("root", spec.root)
        .add("hostname", spec.hostname)
        .add("mounts", spec.mounts)
        .add("linux", spec.linux_);
    if (!spec.annotations.empty()) config.add("annotations", annotations.json());
    return json_text(config.json());
}

}  // namespace pinfold
