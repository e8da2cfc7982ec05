// A scope: its name, its properties, and the other end of pinfold-scope. Names follow systemd.unit(5) and
// systemd.slice(5).
#include "cgroup/systemd.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxLength = 255;
constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kRootSlice = "-.slice";

bool is_unit_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.\\@").find(c) != std::string_view::npos;
}

Result<void> check_unit(const std::string& unit) {
    if (unit.size() <= kMaxLength && std::ranges::all_of(unit, is_unit_character)) return {};
    return plain_error(concat(quoted(unit), " is no name of a systemd unit"))
        .with_hint("allowed are up to 255 letters, digits and the characters - _ . \\ @");
}

// A dash stands for one level of nesting.
Result<void> check_slice(const std::string& slice) {
    if (slice == kRootSlice) return {};
    const bool usable = slice.size() > kSlice.size() && slice.ends_with(kSlice) && !slice.starts_with('-') &&
                        !slice.ends_with("-.slice") && slice.find("--") == std::string::npos;
    if (!usable) {
        return plain_error(concat(quoted(slice), " is no name of a systemd slice"))
            .with_hint("it looks like system.slice, or outer-inner.slice for a slice within outer.slice");
    }
    return check_unit(slice);
}

// Of all that an id may hold, '+' alone is not allowed in the name of a unit.
std::string escaped(std::string_view id) {
    std::string out;
    for (const char c : id) {
        if (c == '+') out += "\\x2b";
        else out += c;
    }
    return out;
}

constexpr uint64_t kSecond = 1'000'000;         // in microseconds
constexpr uint64_t kQuotaStep = kSecond / 100;  // systemd keeps a quota in whole per cents

// Files whose one value is the property's.
constexpr std::pair<std::string_view, std::string_view> kSameValue[] = {
    {"memory.max", "MemoryMax"}, {"memory.high", "MemoryHigh"},        {"memory.low", "MemoryLow"},
    {"memory.min", "MemoryMin"}, {"memory.swap.max", "MemorySwapMax"}, {"cpu.weight", "CPUWeight"},
    {"pids.max", "TasksMax"},    {"cpuset.cpus", "AllowedCPUs"},       {"cpuset.mems", "AllowedMemoryNodes"},
};

std::string in_words_of_systemd(const std::string& value) { return value == "max" ? "infinity" : value; }

// "QUOTA PERIOD" as time per second, rounded up: the file itself has the exact quota.
void add_cpu_quota(std::string_view value, std::vector<std::string>& properties) {
    const std::vector<std::string_view> words = split(value, ' ');
    const auto period = parse_number<uint64_t>(words.back());
    if (words.size() != 2 || !period || *period == 0) return;
    const auto quota = parse_number<uint64_t>(words[0]);
    const uint64_t per_second = quota ? *quota * kSecond / *period : 0;
    const uint64_t rounded = (per_second + kQuotaStep - 1) / kQuotaStep * kQuotaStep;
    properties.push_back(concat("CPUQuotaPerSecUSec=", quota ? std::to_string(rounded) : "infinity"));
    properties.push_back(concat("CPUQuotaPeriodUSec=", *period));
}

// "default 100"; weights for single devices are not systemd's to know.
void add_io_weight(std::string_view value, std::vector<std::string>& properties) {
    constexpr std::string_view kDefault = "default ";
    if (value.starts_with(kDefault)) properties.push_back(concat("IOWeight=", value.substr(kDefault.size())));
}

constexpr const char* kProgram = "pinfold-scope";
// It gives up by itself before that, and says why; this is for one that cannot.
constexpr std::chrono::seconds kAnswerPatience{15};
constexpr size_t kMaxAnswer = 4096;

// It is beside pinfold, as in the build directory, or where it is installed; never where $PATH leads.
Result<std::string> find_program() {
    const std::string own = own_path();
    for (const std::string& path :
         {concat(own.substr(0, own.rfind('/') + 1), kProgram), concat(PINFOLD_LIBEXECDIR, "/", kProgram)}) {
        if (path.starts_with('/') && ::access(path.c_str(), X_OK) == 0) return path;
    }
    return plain_error(concat(kProgram, " is neither beside pinfold nor in ", PINFOLD_LIBEXECDIR))
        .with_hint("install it there, or use --cgroup-manager cgroupfs");
}

// A caller's LD_LIBRARY_PATH may lead into the bundle, so of the environment it gets only the way to the bus.
std::vector<std::string> environment() {
    std::vector<std::string> variables;
    for (const char* name : {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"}) {
        if (const char* value = ::getenv(name)) variables.push_back(concat(name, "=", value));
    }
    return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
}

// What a started program gets besides its arguments: no signal blocked or ignored, no descriptor of ours but `errors`.
class SpawnSettings {
public:
    explicit SpawnSettings(int errors) {
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawn_file_actions_init(&files_);
        sigset_t signals;
        ::sigemptyset(&signals);
        ::posix_spawnattr_setsigmask(&attributes_, &signals);
        ::sigfillset(&signals);
        ::posix_spawnattr_setsigdefault(&attributes_, &signals);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        ::posix_spawn_file_actions_adddup2(&files_, errors, STDERR_FILENO);
        ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDWR, 0);
        ::posix_spawn_file_actions_adddup2(&files_, STDIN_FILENO, STDOUT_FILENO);
        ::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        ::posix_spawn_file_actions_destroy(&files_);
        ::posix_spawnattr_destroy(&attributes_);
    }

    const posix_spawnattr_t* attributes() const { return &attributes_; }
    const posix_spawn_file_actions_t* files() const { return &files_; }

private:
    posix_spawnattr_t attributes_{};
    posix_spawn_file_actions_t files_{};
};

// Reads until its end closes the pipe: what it had to say, or nothing if it has not ended in time.
std::optional<std::string> read_answer(int pipe) {
    const Deadline deadline(kAnswerPatience);
    std::string answer;
    for (;;) {
        pollfd ready{pipe, POLLIN, 0};
        if (::poll(&ready, 1, static_cast<int>(deadline.left_ms())) == 0) return std::nullopt;
        char buffer[512];
        const ssize_t got = ::read(pipe, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return answer;
        if (answer.size() < kMaxAnswer) answer.append(buffer, size_t(got));
    }
}

Result<void> await_program(pid_t pid, int pipe) {
    std::optional<std::string> answer = read_answer(pipe);
    if (!answer) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!answer) return plain_error(concat(kProgram, " has not ended within ", kAnswerPatience.count(), " s"));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    while (answer->ends_with('\n')) answer->pop_back();
    return plain_error(answer->empty() ? concat(kProgram, " failed without a word") : *answer);
}

Result<void> run_program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TRY(find_program()));
    std::vector<std::string> variables = environment();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    const SpawnSettings settings(writer.get());
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, arguments[0].c_str(), settings.files(), settings.attributes(),
                                     pointers(arguments).data(), pointers(variables).data());
    if (failed != 0) return errno_error(failed, concat("start ", arguments[0]));
    writer.reset();
    return await_program(pid, reader.get());
}

constexpr std::chrono::seconds kCollecting{1};  // longer than systemd takes for a scope that has become empty
constexpr std::chrono::seconds kStopping{5};

// True: the directory went away in time. Its parent, a slice, may go with it.
bool await_removal(const std::string& directory, std::chrono::milliseconds patience) {
    const Deadline deadline(patience);
    const Result<UniqueFd> removals = watch_removals(directory.substr(0, directory.rfind('/')));
    while (::access(directory.c_str(), F_OK) == 0) {
        if (deadline.left_ms() == 0) return false;
        pollfd change{removals ? removals->get() : -1, POLLIN, 0};
        ::poll(&change, 1, static_cast<int>(deadline.left_ms()));
        if (removals) discard(*removals);
    }
    return true;
}

Result<void> apply_limits(int group, const CgroupPlan& plan) {
    const std::string controllers = TRY(read_control(group, "cgroup.controllers"));
    for (const CgroupWrite& write : plan.writes) {
        Result<void> written = write_limit(group, write);
        if (written) continue;
        const std::string_view controller = controller_of(write.file);
        if (controller.empty() || has_word(controllers, controller)) return written;
        return std::move(written).error().with_hint(
            concat("systemd has not given the controller '", controller,
                   "' to the scope; a normal user has those that Delegate= of user@.service names"));
    }
    return {};
}

}  // namespace

bool has_scope_program() { return PINFOLD_HAS_SCOPE; }

Result<ScopeName> parse_scope_name(const std::string& cgroups_path, const std::string& id,
                                   const std::string& default_slice) {
    const std::string triple = cgroups_path.empty() ? concat(":pinfold:", escaped(id)) : cgroups_path;
    const std::vector<std::string_view> parts = split(triple, ':');
    if (triple.starts_with('/') || parts.size() != 3 || parts[2].empty()) {
        return plain_error(concat(quoted(triple), " is not SLICE:PREFIX:NAME, which the systemd cgroup manager needs"))
            .with_hint("as in system.slice:docker:web; paths are for --cgroup-manager cgroupfs");
    }
    if (parts[2].ends_with(kSlice)) {
        return plain_error(concat(quoted(parts[2]), " is a slice, and a container is a scope"))
            .with_hint("a slice for several containers comes first: SLICE:PREFIX:NAME");
    }
    ScopeName name;
    name.slice = parts[0].empty() ? default_slice : std::string(parts[0]);
    name.unit = concat(parts[1], parts[1].empty() ? "" : "-", parts[2], ".scope");
    TRY(check_slice(name.slice));
    TRY(check_unit(name.unit));
    return name;
}

std::string scope_path(const ScopeName& name) {
    std::string path;
    if (name.slice != kRootSlice) {
        for (size_t dash = name.slice.find('-'); dash != std::string::npos; dash = name.slice.find('-', dash + 1)) {
            path += concat("/", name.slice.substr(0, dash), kSlice);
        }
        path += concat("/", name.slice);
    }
    return concat(path, "/", name.unit);
}

std::vector<std::string> limit_properties(const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> properties;
    for (const CgroupWrite& write : writes) {
        if (write.file == "cpu.max") add_cpu_quota(write.value, properties);
        if (write.file == "io.weight") add_io_weight(write.value, properties);
        for (const auto& [file, property] : kSameValue) {
            if (write.file == file) properties.push_back(concat(property, "=", in_words_of_systemd(write.value)));
        }
    }
    return properties;
}

std::vector<std::string> scope_properties(const ScopeName& name, const std::string& id,
                                          const std::vector<CgroupWrite>& writes) {
    std::vector<std::string> properties = {
        concat("Slice=", name.slice),
        concat("Description=pinfold container ", id),
        "Delegate=yes",                    // the groups below are the payload's, and every controller is passed on
        "DefaultDependencies=no",          // it may be started and stopped at any time
        "CollectMode=inactive-or-failed",  // however it ends, nothing of it stays
        "TimeoutStopUSec=5000000",         // for one who stops the unit: a first process may ignore SIGTERM
        "CPUAccounting=yes",
        "MemoryAccounting=yes",
        "IOAccounting=yes",
        "TasksAccounting=yes",
    };
    // systemd has a limit of its own for units that have none.
    const bool limits_tasks = std::ranges::any_of(writes, [](const auto& write) { return write.file == "pids.max"; });
    if (!limits_tasks) properties.emplace_back("TasksMax=infinity");
    const std::vector<std::string> limits = limit_properties(writes);
    properties.insert(properties.end(), limits.begin(), limits.end());
    return properties;
}

Result<void> SystemdScope::ask(const char* verb, const std::vector<std::string>& properties) const {
    // Below a service of that name are a user's units, and only those.
    const bool is_users = place_.path.find("/user@") != std::string::npos;
    std::vector<std::string> arguments = {is_users ? "--user" : "--system", verb, place_.scope};
    arguments.insert(arguments.end(), properties.begin(), properties.end());
    TRY_IN(concat(verb, " ", place_.scope), run_program(std::move(arguments)));
    return {};
}

// Looked at before the start: with a process that is about to freeze in it, a slice does not count as frozen.
Result<void> SystemdScope::refuse_frozen_slice() const {
    const std::string& path = place_.path;
    for (size_t end = path.rfind('/'); end != std::string::npos && end > 0; end = path.rfind('/', end - 1)) {
        const std::string slice = place_.mount + path.substr(0, end);
        const Result<std::string> events = read_control(AT_FDCWD, slice + "/cgroup.events");
        if (!events) continue;  // systemd has yet to make it
        TRY_IN(concat("cgroup ", slice), refuse_frozen(*events));
        return {};
    }
    return {};
}

// systemd decides on the path, from what it knows better; all that follows goes by the one that was planned.
Result<void> SystemdScope::check_path(pid_t pid) const {
    const std::string actual = TRY(group_of(pid));
    if (actual == place_.path) return {};
    return plain_error(
        concat(place_.scope, ": systemd put the container into the cgroup ", actual, ", not into ", place_.path));
}

Result<void> SystemdScope::make(const CgroupPlan& plan, NewGroup& /*group*/) {
    const UniqueFd mount = TRY(open_at(AT_FDCWD, place_.mount, O_PATH | O_DIRECTORY));
    TRY(check_controllers(mount.get(), plan));
    return refuse_frozen_slice();
}

Result<void> SystemdScope::attach(const CgroupPlan& plan, pid_t pid, NewGroup& group) {
    std::vector<std::string> properties = plan.scope_properties;
    properties.insert(properties.begin(), concat("PIDs=", pid));
    TRY(ask("start", properties));
    group.made = place_;  // not before: a unit of that name may have been somebody else's
    TRY(check_path(pid));
    group.fd = TRY(open_group(place_));
    TRY_IN(name(), apply_limits(group.fd.get(), plan));
    TRY_IN(name(), filter_devices(group.fd.get(), plan));
    TRY_IN(name(), delegate(group.fd.get(), plan.owner));
    return {};
}

Result<void> SystemdScope::add_process(pid_t pid) {
    const std::string group = TRY(group_of(pid));
    if (group == place_.path || group.starts_with(place_.path + "/")) return {};
    return ask("attach", {concat("PIDs=", pid)});
}

Result<void> SystemdScope::update_limits(const DividedResources& resources, Undo& undo, GroupLimits& written) {
    TRY(V2Group::update_limits(resources, undo, written));
    const std::vector<std::string> properties = limit_properties(written.v2);
    if (!properties.empty()) TRY(ask("set", properties));
    // What systemd writes on that occasion is what it knows, and rounded: the exact values are written once more.
    for (const CgroupWrite& write : written.v2) TRY(write_limit(fd_.get(), write));
    return {};
}

Result<void> SystemdScope::remove() {
    const std::string step = "remove " + name();
    // Before Linux 5.14 there is no such file, and systemd kills one by one when it is told to stop the scope.
    const Result<void> killed = write_file_at(AT_FDCWD, directory() + "/cgroup.kill", "1");
    if (!killed && !has_vanished(killed.error())) return Error(killed.error()).within(step);
    if (await_removal(directory(), kCollecting)) return {};
    return stop(step);
}

Result<void> SystemdScope::remove_empty() {
    const std::string step = "remove " + name();
    // Of a start that was killed, the first process and whoever asked systemd for the scope may still be on their way
    // out.
    if (await_removal(directory(), kStopping)) return {};
    const Result<std::string> events = read_control(AT_FDCWD, directory() + "/cgroup.events");
    if (!events && has_vanished(events.error())) return {};
    if (!events || has_event(*events, "populated")) return plain_error(step + ": something still runs in it");
    // Of a process that had ended before it was put there, systemd hears no end, and the scope would stay for ever.
    return stop(step);
}

Result<void> SystemdScope::stop(const std::string& step) const {
    TRY_IN(step, ask("stop", {}));  // one that is gone is stopped
    if (await_removal(directory(), kStopping)) return {};
    return plain_error(concat(step, ": systemd has stopped ", place_.scope, ", but the group is still there"));
}

}  // namespace pinfold
