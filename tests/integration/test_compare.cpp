// The same bundle under this runtime and its peers: the payload must see the same, but for a table of
// differences that are meant.
#include <algorithm>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

// What the peers' payloads see and ours does not, or the other way round; a path is a JSON pointer into the
// normalised report and stands for all below it.
struct Difference {
    std::string peer;  // empty: every peer
    std::string path;
    std::string why;
};

const std::vector<Difference>& meant() {
    static const std::vector<Difference> table = {
        {"", "/proc/cgroup", "each runtime names its groups in its own way"},
        {"", "/keyring/description", "each runtime names its keyring in its own way"},
        {"", "/devices/~1dev~1core", "a link to /proc/kcore, which is masked: of no use to anybody"},
        {"", "/mounts/~1proc~1keys", "masked by a null device of our own: the container's could be a link to anything"},
        {"", "/mounts/~1proc~1timer_list", "likewise"},
        {"", "/mounts/~1proc~1kcore", "likewise"},
        {"", "/mounts/~1sys~1firmware",
         "masked by one empty directory for all, which also has nosuid, nodev and noexec"},
        {"runc", "/devices/~1dev~1mqueue/gid",
         "in a user namespace the queues are the container's root's, as crun has it"},
        {"crun", "/mounts/~1sys/super", "a read-only sysfs is so as a whole, not only where it is mounted"},
        {"crun", "/mounts/~1dev~1",
         "nodes bound from the host have no nosuid and noexec: nothing executes a device anyway"},
    };
    return table;
}

// {"point": {...}}, so that differences name what differs and the order of equals does not matter.
json keyed(const json& list, const std::string& key) {
    json out = json::object();
    for (json entry : list) {
        const std::string name = entry[key];
        entry.erase(key);
        out[name] = entry;
    }
    return out;
}

void sort_list(json& list) { std::sort(list.begin(), list.end()); }

// Without what differs from run to run: ids, numbers of devices, times.
json normalised(json report) {
    for (auto& [name, value] : report["namespaces"].items()) {
        const std::string host = own_namespace(name);
        value = value == host ? "the host's" : "new";
    }
    for (json& mount : report["mounts"]) {
        for (const char* key : {"id", "parent", "device"}) mount.erase(key);
        if (mount["point"] == "/") mount["root"] = fs::path(mount["root"].get<std::string>()).filename().string();
        sort_list(mount["options"]);
        sort_list(mount["super"]);
        // Inodes of a tmpfs depend on the machine's free memory at the moment.
        mount["super"].erase(
            std::remove_if(mount["super"].begin(), mount["super"].end(),
                           [](const json& option) { return option.get<std::string>().rfind("nr_inodes=", 0) == 0; }),
            mount["super"].end());
    }
    report["mounts"] = keyed(report["mounts"], "point");
    for (json& device : report["devices"]) device.erase("size");
    report["devices"] = keyed(report["devices"], "path");
    for (json& fd : report["fds"]) fd.erase("target");
    sort_list(report["env"]);
    report["keyring"].erase("id");
    report.erase("clocks");
    return report;
}

bool is_meant(const std::string& peer, const std::string& path) {
    return std::any_of(meant().begin(), meant().end(), [&](const Difference& difference) {
        return (difference.peer.empty() || difference.peer == peer) && path.rfind(difference.path, 0) == 0;
    });
}

// The first command line under which this peer can run anything here: crun cannot use every cgroup layout.
std::vector<std::string> working(const std::string& peer, const std::string& text) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{peer}, {peer, "--cgroup-manager=disabled"}}) {
        if (run_program({"sh", "-c", "command -v " + peer}).status != 0) return {};
        Bundle bundle;
        bundle.config = json::parse(text);
        bundle.write_config();
        std::vector<std::string> line = command;
        line.insert(line.end(), {"--root", bundle.state_root(), "run", "--bundle", bundle.path(), bundle.id()});
        if (run_program(line).status == 0) return command;
    }
    return {};
}

json report_by(const std::vector<std::string>& command, const std::string& text) {
    Bundle bundle;
    bundle.config = json::parse(text);
    bundle.write_config();
    std::vector<std::string> line = command;
    line.insert(line.end(), {"--root", bundle.state_root(), "run", "--bundle", bundle.path(), bundle.id()});
    const Ended ended = run_program(line);
    return normalised(Outcome{ended.status, ended.out, ended.err}.answer());
}

void compare(const std::string& text) {
    const json ours = report_by(runtime_command(), text);
    int compared = 0;
    for (const std::string& peer : std::vector<std::string>{"runc", "crun"}) {
        const std::vector<std::string> command = working(peer, text);
        if (command.empty()) continue;
        ++compared;
        const json theirs = report_by(command, text);
        for (const json& step : json::diff(theirs, ours)) {
            const std::string path = step["path"];
            if (is_meant(peer, path)) continue;
            const json::json_pointer place(path);
            CHECK_MESSAGE(step.empty(), peer << " " << path << ": theirs "
                                             << (theirs.contains(place) ? theirs[place].dump() : "nothing") << ", ours "
                                             << (ours.contains(place) ? ours[place].dump() : "nothing"));
        }
    }
    CHECK(compared > 0);
}

bool peers_are_here() { return run_program({"sh", "-c", "command -v runc || command -v crun"}).status == 0; }

}  // namespace

TEST_CASE("compare: the default bundle") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!peers_are_here()) SKIP_TEST("neither runc nor crun is installed");
    Bundle bundle;
    compare(bundle.config.dump());
}

TEST_CASE("compare: a user, capabilities, limits and a read-only root") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!peers_are_here()) SKIP_TEST("neither runc nor crun is installed");
    Bundle bundle;
    bundle.config["root"]["readonly"] = true;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1001}, {"additionalGids", {5, 6}}};
    bundle.config["process"]["capabilities"]["inheritable"] = {"CAP_KILL"};
    bundle.config["process"]["capabilities"]["ambient"] = {"CAP_KILL"};
    bundle.config["process"]["oomScoreAdj"] = 300;
    bundle.config["process"]["noNewPrivileges"] = false;
    bundle.config["process"]["rlimits"].push_back({{"type", "RLIMIT_CORE"}, {"soft", 1}, {"hard", 2}});
    bundle.config["linux"]["sysctl"] = {{"net.ipv4.ip_forward", "1"}};
    bundle.mount("/tmp", "tmpfs", "tmp", {"nosuid", "nodev", "mode=1777", "size=1m"});
    compare(bundle.config.dump());
}

TEST_CASE("compare: a user namespace") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!peers_are_here()) SKIP_TEST("neither runc nor crun is installed");
    Bundle bundle;
    bundle.add_namespace("user").add_namespace("cgroup");
    const json map = json::array({{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}});
    bundle.config["linux"]["uidMappings"] = map;
    bundle.config["linux"]["gidMappings"] = map;
    compare(bundle.config.dump());
}
