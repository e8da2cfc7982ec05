// The configurations that faults are tried on.
#include "configs.hpp"

namespace pinfold::faults {

using namespace integration;

namespace {

void ask(json& args, const std::vector<Command>& commands) {
    for (const Command& command : commands) {
        args.push_back(";");
        for (const std::string& word : command) args.push_back(word);
    }
}

json hook(const char* path, const std::vector<std::string>& args) {
    return json::array({{{"path", path}, {"args", args}}});
}

}  // namespace

const std::vector<Command>& questions() {
    static const std::vector<Command> all = {
        {"report"},
        {"read", "/proc/sys/net/core/somaxconn"},
        {"open", "/proc/sysrq-trigger", "wo"},
        {"read", "/proc/keys"},
        {"create", "/written", "x"},
        {"create", "/data/written", "x"},
        {"open", "/dev/null", "rw"},
        {"syscall", "41", "16", "3"},  // socket(AF_NETLINK), which the filter denies
    };
    return all;
}

const std::vector<Command>& limit_questions() {
    static const std::vector<Command> all = [] {
        std::vector<Command> out;
        for (const char* file :
             {"memory.max", "memory.low", "memory.swap.max", "cpu.max", "cpu.weight", "pids.max", "cpuset.cpus",
              "memory/memory.limit_in_bytes", "memory/memory.soft_limit_in_bytes", "cpu/cpu.cfs_quota_us",
              "cpu/cpu.shares", "pids/pids.max", "cpuset/cpuset.cpus", "devices/devices.list"}) {
            out.push_back({"read", std::string("/sys/fs/cgroup/") + file});
        }
        out.push_back({"open", "/dev/full", "ro"});  // the one device that is denied
        return out;
    }();
    return all;
}

void plain(Bundle& bundle) {
    json& config = bundle.config;
    config["root"]["readonly"] = true;
    config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}, {"additionalGids", {7}}, {"umask", 63}};
    config["process"]["oomScoreAdj"] = 100;
    config["process"]["ioPriority"] = {{"class", "IOPRIO_CLASS_BE"}, {"priority", 6}};
    config["linux"]["sysctl"] = {{"net.core.somaxconn", "77"}};
    const json netlink = {{"index", 0}, {"value", 16}, {"op", "SCMP_CMP_EQ"}};
    config["linux"]["seccomp"] = {
        {"defaultAction", "SCMP_ACT_ALLOW"},
        {"architectures", {"SCMP_ARCH_X86_64"}},
        {"syscalls", {{{"names", {"socket"}}, {"action", "SCMP_ACT_ERRNO"}, {"args", json::array({netlink})}}}}};
    config["linux"].erase("resources");
    write_text(bundle.host() / "there", "text");
    bundle.bind(bundle.host(), "/data", {"ro"});
    bundle.mount("/tmp", "tmpfs", "tmpfs", {"nosuid", "nodev", "mode=1777", "size=1m"});
}

void limited(Bundle& bundle) {
    plain(bundle);
    bundle.config["linux"]["cgroupsPath"] = "/pinfold/" + bundle.id();
    bundle.config["linux"]["resources"] = {
        {"memory", {{"limit", 64 << 20}, {"reservation", 32 << 20}}},
        {"cpu", {{"shares", 512}, {"quota", 50000}, {"period", 50000}, {"cpus", "0"}}},
        {"pids", {{"limit", 50}}},
        {"devices",
         {{{"allow", false}, {"access", "rwm"}},
          {{"allow", true}, {"type", "c"}, {"major", 1}, {"minor", 3}, {"access", "rwm"}}}}};
    bundle.add_namespace("cgroup");
    bundle.mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "ro"});
    ask(bundle.config["process"]["args"], limit_questions());
}

void unfiltered(Bundle& bundle) {
    limited(bundle);
    bundle.config["linux"].erase("seccomp");
}

void mapped(Bundle& bundle) {
    plain(bundle);
    bundle.add_namespace("user");
    bundle.config["linux"]["uidMappings"] = {{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}};
    bundle.config["linux"]["gidMappings"] = bundle.config["linux"]["uidMappings"];
}

void rootless(Bundle& bundle) {
    plain(bundle);
    bundle.config["process"]["user"] = {{"uid", 0}, {"gid", 0}};
}

void hooked(Bundle& bundle) {
    plain(bundle);
    json& hooks = bundle.config["hooks"];
    for (const char* kind : {"prestart", "createRuntime", "createContainer", "poststart", "poststop"}) {
        hooks[kind] = hook("/bin/true", {"true"});
    }
    hooks["startContainer"] = hook("/probe", {"probe", "exit", "0"});
}

void with_terminal(Bundle& bundle) {
    plain(bundle);
    bundle.config["process"]["terminal"] = true;
}

// For a call that the payload does not make: nobody answers.
void listened(Bundle& bundle) {
    plain(bundle);
    json& seccomp = bundle.config["linux"]["seccomp"];
    seccomp["syscalls"].push_back({{"names", {"swapon"}}, {"action", "SCMP_ACT_NOTIFY"}});
    seccomp["listenerPath"] = bundle.host() / "listener";
}

void on_terminal(Bundle& bundle) {
    with_terminal(bundle);
    bundle.probe_each({{"read", "/proc/sys/net/core/somaxconn"}, {"create", "/written", "x"}});
}

void among_others(Bundle& bundle) {
    plain(bundle);
    bundle.probe_each(
        {{"read", "/proc/sys/net/core/somaxconn"}, {"read", "/proc/1/comm"}, {"create", "/written", "x"}});
}

void add_wait(Bundle& bundle) { ask(bundle.config["process"]["args"], {{"wait-signal"}}); }

std::vector<Command> all_questions() {
    std::vector<Command> all = questions();
    all.insert(all.end(), limit_questions().begin(), limit_questions().end());
    return all;
}

Words exec_words(const std::vector<Command>& commands, const Words& options) {
    json words = {"exec"};
    for (const std::string& option : options) words.push_back(option);
    for (const char* word : {"ID", "/probe"}) words.push_back(word);
    ask(words, commands);
    return words;
}

// Where the filter's listener fails, the kernel itself denies with another errno: not to be asked for.
Words sandbox_words(const Words& options) {
    json words = {"sandbox", "--name", "ID", "--rootfs", "BUNDLE/rootfs"};
    for (const std::string& option : options) words.push_back(option);
    for (const char* word : {"--", "/probe"}) words.push_back(word);
    ask(words, {{"report"}, {"read", "/proc/keys"}, {"create", "/written", "x"}});
    return words;
}

}  // namespace pinfold::faults
