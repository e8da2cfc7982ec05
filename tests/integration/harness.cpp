// Building bundles, running them, and looking for what was left behind.
#include "harness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

namespace pinfold::integration {

namespace {

std::string from_environment(const char* variable, const char* otherwise) {
    const char* value = std::getenv(variable);
    return value != nullptr ? value : otherwise;
}

// A program where every user can reach it: the directory that it was built in may be closed to others.
fs::path copy_to_playground(const fs::path& program) {
    const fs::path target = playground() / program.filename();
    fs::copy_file(program, target);
    ::chmod(target.c_str(), 0755);
    return target;
}

// One copy of the payload; bundles link it.
const fs::path& payload() {
    static const fs::path copy = copy_to_playground(from_environment("PINFOLD_PROBE", PINFOLD_BUILT_PROBE));
    return copy;
}

constexpr const char* kDefaultConfig = R"({
    "ociVersion": "1.0.2",
    "process": {
        "user": {"uid": 0, "gid": 0},
        "args": ["/probe", "report"],
        "env": ["PATH=/usr/bin:/bin", "TERM=xterm"],
        "cwd": "/",
        "capabilities": {
            "bounding": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
            "effective": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"],
            "permitted": ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"]
        },
        "rlimits": [{"type": "RLIMIT_NOFILE", "hard": 1024, "soft": 1024}],
        "noNewPrivileges": true
    },
    "root": {"path": "rootfs"},
    "hostname": "inside",
    "mounts": [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
         "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        {"destination": "/dev/pts", "type": "devpts", "source": "devpts",
         "options": ["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm",
         "options": ["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]},
        {"destination": "/dev/mqueue", "type": "mqueue", "source": "mqueue", "options": ["nosuid", "noexec", "nodev"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": ["nosuid", "noexec", "nodev", "ro"]}
    ],
    "linux": {
        "resources": {"devices": [{"allow": false, "access": "rwm"}]},
        "namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}],
        "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
        "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]
    }
})";

std::string next_id() {
    static int count = 0;
    return "test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

void give_to(const fs::path& path, uid_t uid) {
    CHECK(::lchown(path.c_str(), uid, uid) == 0);
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
        // The payload is one file with many names; it stays root's and executable for all.
        if (entry.path().filename() != "probe") CHECK(::lchown(entry.path().c_str(), uid, uid) == 0);
    }
}

std::string names_below(const fs::path& path) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
        names.push_back(fs::relative(entry.path().parent_path(), path) / entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    std::string out;
    for (const std::string& name : names) out += name + "\n";
    return out;
}

}  // namespace

const std::vector<std::string>& runtime_command() {
    static const std::vector<std::string> words = [] {
        std::istringstream text(from_environment("PINFOLD_BIN", PINFOLD_BUILT_BINARY));
        std::vector<std::string> out;
        for (std::string word; text >> word;) out.push_back(word);
        if (!playground().empty() && fs::path(out.front()).filename() == "pinfold") out[0] = copy_to_playground(out[0]);
        return out;
    }();
    return words;
}

Runtime runtime() {
    const std::string name = fs::path(runtime_command().front()).filename();
    if (name == "crun") return Runtime::crun;
    return name == "runc" ? Runtime::runc : Runtime::pinfold;
}

json Outcome::answer(size_t index) const {
    std::istringstream lines(out);
    std::string line;
    for (size_t i = 0; i <= index; ++i) {
        if (!std::getline(lines, line)) FAIL("no answer " << index << "; exit " << status << ", stderr: " << err);
    }
    json parsed = json::parse(line, nullptr, false);
    if (parsed.is_discarded()) FAIL("not an answer: " << line << "\nstderr: " << err);
    return parsed;
}

Bundle::Bundle() : config(json::parse(kDefaultConfig)), id_(next_id()) {
    home_ = playground() / id_;
    path_ = home_ / "bundle";
    for (const char* name : {"proc", "dev", "sys", "tmp", "etc", "data"}) fs::create_directories(rootfs() / name);
    fs::create_directories(state_root());
    fs::create_directories(host());
    fs::create_hard_link(payload(), rootfs() / "probe");
    mounts_before_ = mount_table();
}

Bundle::~Bundle() {
    INFO("left behind by ", id_);
    check_processes();
    CHECK(mount_table() == mounts_before_);
    for (const std::string& group : cgroups_named(id_)) CHECK_MESSAGE(group.empty(), "a cgroup");
    for (const auto& entry : fs::directory_iterator(state_root())) {
        // Compiled filters are kept on purpose, for the next container, and so is the file that counting is locked by.
        const bool expected = entry.path().filename() == ".seccomp" || entry.path().filename() == ".turn";
        CHECK_MESSAGE(expected, "a state: " << entry.path().filename());
    }
    for (const auto& entry : fs::directory_iterator(path_)) {
        const std::string name = entry.path().filename();
        const bool expected = name == "rootfs" || name == "config.json";
        CHECK_MESSAGE(expected, "a stray file in the bundle: " << name);
    }
    std::error_code ignored;
    fs::remove_all(home_, ignored);
}

// Whatever the runtime leaves is a child of ours by now. What is about to end is given the time to do so.
void Bundle::check_processes() const {
    bool left = false;
    for (const pid_t child : children()) {
        const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
        pollfd source{pidfd.get(), POLLIN, 0};
        if (!pidfd || ::poll(&source, 1, testing::slow_machine() ? 20000 : 5000) == 1) continue;
        CHECK_MESSAGE(child == 0,
                      "a process: " << child << " " << read_text("/proc/" + std::to_string(child) + "/comm"));
        left = true;
    }
    // In whichever order they end: the first process of a namespace waits until we have reaped the others.
    for (; left; left = ::waitpid(-1, nullptr, 0) > 0) {
        for (const pid_t child : children()) ::kill(child, SIGKILL);
    }
    while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

void Bundle::make_rootless(uid_t uid) {
    config["linux"]["namespaces"].push_back({{"type", "user"}});
    config["linux"]["uidMappings"] = json::array({{{"containerID", 0}, {"hostID", uid}, {"size", 1}}});
    config["linux"]["gidMappings"] = config["linux"]["uidMappings"];
    config["linux"].erase("resources");
    for (json& entry : config["mounts"]) {
        // Group 5 is not mapped.
        if (entry["type"] == "devpts") entry["options"].erase(entry["options"].size() - 1);
    }
    write_config();
    give_to(home_, uid);
}

Bundle& Bundle::probe_each(const std::vector<Command>& commands) {
    json args = json::array({"/probe"});
    for (const Command& command : commands) {
        if (args.size() > 1) args.push_back(";");
        for (const std::string& word : command) args.push_back(word);
    }
    config["process"]["args"] = args;
    return *this;
}

Bundle& Bundle::mount(const std::string& destination, const std::string& type, const std::string& source,
                      const std::vector<std::string>& options) {
    config["mounts"].push_back(
        {{"destination", destination}, {"type", type}, {"source", source}, {"options", options}});
    return *this;
}

Bundle& Bundle::bind(const fs::path& source, const std::string& destination, std::vector<std::string> options) {
    if (std::find(options.begin(), options.end(), "rbind") == options.end()) options.push_back("bind");
    return mount(destination, "bind", source, options);
}

Bundle& Bundle::drop_mount(const std::string& destination) {
    json& all = config["mounts"];
    all.erase(std::remove_if(all.begin(), all.end(), [&](const json& m) { return m["destination"] == destination; }),
              all.end());
    return *this;
}

Bundle& Bundle::drop_namespace(const std::string& type) {
    json& all = config["linux"]["namespaces"];
    all.erase(std::remove_if(all.begin(), all.end(), [&](const json& n) { return n["type"] == type; }), all.end());
    return *this;
}

Bundle& Bundle::add_namespace(const std::string& type, const std::string& path) {
    drop_namespace(type);
    json entry = {{"type", type}};
    if (!path.empty()) entry["path"] = path;
    config["linux"]["namespaces"].push_back(entry);
    return *this;
}

void Bundle::write_config() const { write_text(path_ / "config.json", config.dump(2)); }

std::string Bundle::listing() const { return names_below(home_); }

std::vector<std::string> Bundle::verb(const std::vector<std::string>& words) const {
    std::vector<std::string> line = runtime_command();
    line.insert(line.end(), {"--root", state_root()});
    line.insert(line.end(), words.begin(), words.end());
    return line;
}

std::vector<std::string> Bundle::command_line(const RunOptions& options) const {
    std::vector<std::string> words = options.global;
    words.insert(words.end(), {"run", "--bundle", path_});
    words.insert(words.end(), options.args.begin(), options.args.end());
    words.push_back(id_);
    return verb(words);
}

std::unique_ptr<Process> start(const Bundle& bundle, const RunOptions& options) {
    bundle.write_config();
    return std::make_unique<Process>(bundle.command_line(options), options.spawn);
}

Outcome run(const Bundle& bundle, const RunOptions& options) {
    Ended ended = start(bundle, options)->finish();
    return {ended.status, std::move(ended.out), std::move(ended.err)};
}

Outcome run_probe(Bundle& bundle, const std::vector<Command>& commands, const RunOptions& options) {
    bundle.probe_each(commands);
    return run(bundle, options);
}

json report_of(Bundle& bundle, const RunOptions& options) {
    const Outcome outcome = run_probe(bundle, {{"report"}}, options);
    INFO("stderr: ", outcome.err);
    CHECK(outcome.status == 0);
    return outcome.answer();
}

// By who the states belong to: pinfold does not work on those of others.
Ended verb(const Bundle& bundle, const std::vector<std::string>& words) {
    struct stat info {};
    SpawnOptions spawn;
    if (::stat(bundle.state_root().c_str(), &info) == 0 && info.st_uid != 0) spawn.uid = info.st_uid;
    return run_program(bundle.verb(words), spawn);
}

bool exists(const Bundle& bundle) { return fs::exists(bundle.state_root() / bundle.id()); }

std::vector<pid_t> pids_of(const Bundle& bundle) {
    const Ended ended = verb(bundle, {"ps", "--format", "json", bundle.id()});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    return json::parse(ended.out).get<std::vector<pid_t>>();
}

Container::Container(const Bundle& bundle, As as, const RunOptions& options) : bundle_(bundle) {
    bundle.write_config();
    const std::string pid_file = bundle.host() / "container.pid";
    std::vector<std::string> words = options.global;
    words.insert(words.end(), {"create", "--bundle", bundle.path(), "--pid-file", pid_file});
    words.insert(words.end(), options.args.begin(), options.args.end());
    words.push_back(bundle.id());
    // By default to a file: a pipe's reader is gone when create has ended.
    const UniqueFd output(::open((bundle.host() / "output").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    SpawnOptions spawn = options.spawn;
    spawn.fds.insert(spawn.fds.begin(), {1, output.get()});
    const Ended created = run_program(bundle.verb(words), spawn);
    REQUIRE_MESSAGE(created.status == 0, created.err);
    pid_ = static_cast<pid_t>(std::stol(read_text(pid_file)));
    pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    if (as == As::running) must({"start", bundle.id()});
}

Container::~Container() { CHECK(verb(bundle_, {"delete", "--force", bundle_.id()}).status == 0); }

std::string Container::status() const {
    return json::parse(must({"state", bundle_.id()})).at("status").get<std::string>();
}

std::string Container::must(const std::vector<std::string>& words) const {
    const Ended ended = verb(bundle_, words);
    REQUIRE_MESSAGE(ended.status == 0, words.front() << ": " << ended.err);
    return ended.out;
}

Ended Container::exec(std::vector<std::string> options, const Command& command, const SpawnOptions& spawn) const {
    options.insert(options.begin(), "exec");
    options.push_back(bundle_.id());
    options.insert(options.end(), command.begin(), command.end());
    return run_program(bundle_.verb(options), spawn);
}

json Container::exec_report(const std::vector<std::string>& options) const {
    const Ended ended = exec(options, {"/probe", "report"});
    REQUIRE_MESSAGE(ended.status == 0, ended.err);
    return json::parse(ended.out);
}

void Container::await_end() const { CHECK(await_readable(pidfd_.get())); }

void check_refused(const Ended& ended, const std::string& words, int status) {
    CHECK(ended.status == status);
    CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
}

json mount_at(const json& report, const std::string& point) {
    json found;
    for (const json& entry : report["mounts"]) {
        if (entry["point"] == point) found = entry;
    }
    if (found.is_null()) FAIL("nothing is mounted at " << point << " in " << report["mounts"].dump());
    return found;
}

bool has(const json& list, const std::string& item) { return std::find(list.begin(), list.end(), item) != list.end(); }

json device_at(const json& report, const std::string& path) {
    for (const json& device : report["devices"]) {
        if (device["path"] == path) return device;
    }
    return nullptr;
}

}  // namespace pinfold::integration
