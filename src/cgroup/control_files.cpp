// Groups as directories of either version of cgroups.
#include "cgroup/control_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr int kAttempts = 100;

Result<void> visit_entries(int group, unsigned char type, const Visitor& visit) {
    UniqueFd again = TRY(open_at(group, ".", O_RDONLY | O_DIRECTORY));
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again.get()), ::closedir);
    if (!entries) return errno_error("read the directory");
    again.release();
    while (const dirent* entry = ::readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        if (entry->d_type == type && name != "." && name != ".." && !visit(name)) break;
    }
    return {};
}

Result<void> add_members(int group, std::vector<pid_t>& pids) {
    const Result<std::string> list = read_long_control(group, "cgroup.procs");
    // A threaded group keeps no list: its processes are in that of a group above.
    if (!list && (has_vanished(list.error()) || list.error().code == EOPNOTSUPP)) return {};
    if (!list) return list.error();
    std::ranges::copy(pids_in(*list), std::back_inserter(pids));
    return {};
}

// The name of any group directly below, or an empty one; so of a group that somebody else has removed meanwhile.
Result<std::string> find_child(int group) {
    std::string child;
    const Result<void> visited = visit_children(group, [&](std::string_view name) {
        child = name;
        return false;
    });
    if (!visited && !has_vanished(visited.error())) return visited.error();
    return child;
}

Result<void> remove_leaf(int parent, const std::string& name, const Deadline& deadline, const EmptyGroup& empty) {
    for (;;) {
        if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
        if (errno != EBUSY || deadline.left_ms() == 0) return errno_error(concat("remove ", name));
        const UniqueFd leaf(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (leaf) TRY(empty(leaf.get()));
    }
}

}  // namespace

Result<std::string> clean_cgroup_path(std::string_view path) {
    std::string clean;
    for (const std::string_view part : split(path, '/')) {
        if (part.empty() || part == ".") continue;
        if (part == ".." || part.find('\0') != std::string_view::npos) {
            return plain_error(concat("cgroup path ", quoted(path), ": leads elsewhere by ", quoted(part)));
        }
        (clean += '/') += part;
    }
    if (clean.empty()) return plain_error(concat("cgroup path ", quoted(path), ": is the top, which is the host's"));
    return clean;
}

Result<std::string> read_control(int dir, const std::string& path) {
    const UniqueFd fd = TRY(open_at(dir, path, O_RDONLY));
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0) return errno_error(concat("read ", path));
    return std::string(buffer, size_t(got));
}

Result<std::string> read_long_control(int dir, const std::string& path) {
    const UniqueFd fd = TRY(open_at(dir, path, O_RDONLY));
    return read_all(fd.get(), path);
}

Result<std::string> directory_of(const CgroupPath& place) {
    const std::string path = TRY(clean_cgroup_path(place.path));
    if (!place.mount.empty() || place.v1.empty()) return place.mount + path;
    // All of them hold the same processes; the freezer is the one that a payload is least likely to subdivide.
    const auto freezer = place.v1.find("freezer");
    return (freezer == place.v1.end() ? place.v1.begin() : freezer)->second + path;
}

Result<UniqueFd> open_group(const CgroupPath& place) {
    return open_at(AT_FDCWD, TRY(directory_of(place)), O_PATH | O_DIRECTORY);
}

bool has_vanished(const Error& error) { return error.code == ENOENT || error.code == ENODEV; }

Result<bool> make_group(const std::function<Result<bool>()>& make_once) {
    for (int attempt = 1;; ++attempt) {
        Result<bool> made = make_once();
        if (made || !has_vanished(made.error()) || attempt == kAttempts) return made;
    }
}

Result<void> visit_children(int group, const Visitor& visit) { return visit_entries(group, DT_DIR, visit); }

Result<void> visit_files(int group, const Visitor& visit) { return visit_entries(group, DT_REG, visit); }

bool has_event(std::string_view events, std::string_view key) {
    const auto lines = split(events, '\n');
    return std::ranges::find(lines, concat(key, " 1")) != lines.end();
}

uint64_t event_count(std::string_view events, std::string_view key) {
    for (const std::string_view line : split(events, '\n')) {
        if (!line.starts_with(key) || line.substr(key.size(), 1) != " ") continue;
        return parse_number<uint64_t>(line.substr(key.size() + 1)).value_or(0);
    }
    return 0;
}

bool has_word(std::string_view list, std::string_view word) {
    while (list.ends_with('\n')) list.remove_suffix(1);
    const auto words = split(list, ' ');
    return std::ranges::find(words, word) != words.end();
}

std::vector<pid_t> pids_in(std::string_view list) {
    std::vector<pid_t> pids;
    for (const std::string_view line : split(list, '\n')) {
        const pid_t pid = parse_number<pid_t>(line).value_or(0);
        if (pid > 0) pids.push_back(pid);
    }
    return pids;
}

Result<std::vector<pid_t>> group_processes(const CgroupPath& place) {
    const Result<UniqueFd> top = open_group(place);
    if (!top && has_vanished(top.error())) return std::vector<pid_t>();
    if (!top) return top.error();
    std::vector<pid_t> pids;
    std::vector<std::string> left = {"."};  // paths, not descriptors: a payload may nest more than there are of those
    while (!left.empty()) {
        const std::string below = std::move(left.back());
        left.pop_back();
        const Result<UniqueFd> group = open_at(top->get(), below, O_PATH | O_DIRECTORY);
        if (!group && has_vanished(group.error())) continue;
        if (!group) return group.error();
        TRY(add_members(group->get(), pids));
        const Result<void> visited = visit_children(group->get(), [&](std::string_view name) {
            left.push_back(concat(below, '/', name));
            return true;
        });
        if (!visited && !has_vanished(visited.error())) return visited.error();
    }
    std::ranges::sort(pids);
    // One that moves meanwhile may be met twice.
    pids.erase(std::unique(pids.begin(), pids.end()), pids.end());
    return pids;
}

// The line "0::/path".
Result<std::string> group_of(pid_t pid) {
    const std::string text = TRY(read_file(concat("/proc/", pid, "/cgroup")));
    for (const std::string_view line : split(text, '\n')) {
        if (line.starts_with("0::/")) return std::string(line.substr(3));
    }
    return plain_error(concat("process ", pid, " is in no cgroup v2 group"));
}

Result<UniqueFd> watch_removals(const std::string& directory) {
    UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    constexpr uint32_t kRemovals = IN_DELETE | IN_DELETE_SELF | IN_ONLYDIR;
    if (!inotify || ::inotify_add_watch(inotify.get(), directory.c_str(), kRemovals) < 0) {
        return errno_error(concat("watch ", directory));
    }
    return inotify;
}

bool discard(const UniqueFd& source) {
    std::array<char, 4096> bytes{};
    bool any = false;
    while (::read(source.get(), bytes.data(), bytes.size()) > 0) any = true;
    return any;
}

// A payload can nest groups deeper than there are descriptors or stack to follow them down, so this holds one group at
// a time and goes back up by "..".
Result<void> remove_tree(UniqueFd parent, const std::string& top, const Deadline& deadline, const EmptyGroup& empty) {
    std::vector<std::string> way = {top};
    UniqueFd here = std::move(parent);
    while (!way.empty()) {
        UniqueFd group(::openat(here.get(), way.back().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!group && errno != ENOENT) return errno_error(concat("open ", way.back()));
        if (group) {
            const std::string child = TRY(find_child(group.get()));
            if (!child.empty()) {
                way.push_back(child);
                here = std::move(group);
                continue;
            }
        }
        TRY(remove_leaf(here.get(), way.back(), deadline, empty));
        way.pop_back();
        if (!way.empty()) here = TRY(open_at(here.get(), "..", O_PATH | O_DIRECTORY));
    }
    return {};
}

namespace {

constexpr uint64_t kNanoseconds = 1000;  // in a microsecond

// The text of a control file; nothing where there is none. The controller is v1's where that is mounted.
struct Control {
    std::string text;
    bool v1 = false;
};

std::optional<Control> read_either(const CgroupPath& place, const std::string& v2, const std::string& v1) {
    if (!place.exists()) return std::nullopt;
    const auto mount = place.v1.find(v1.substr(0, v1.find('.')));
    const bool is_v1 = mount != place.v1.end();
    if (!is_v1 && place.mount.empty()) return std::nullopt;
    const std::string file =
        is_v1 ? concat(mount->second, place.path, '/', v1) : concat(place.mount, place.path, '/', v2);
    const Result<std::string> text = read_long_control(AT_FDCWD, file);
    if (!text) return std::nullopt;
    return Control{*text, is_v1};
}

std::string_view first_line(std::string_view text) { return split(text, '\n')[0]; }

std::optional<uint64_t> number_in(const CgroupPath& place, const std::string& v2, const std::string& v1) {
    const auto control = read_either(place, v2, v1);
    return control ? parse_number<uint64_t>(first_line(control->text)) : std::nullopt;
}

// The sum over all devices: "8:0 rbytes=1 wbytes=2 ..." in v2, "8:0 Read 1" in v1.
uint64_t sum_of(std::string_view text, std::string_view key) {
    uint64_t sum = 0;
    for (const std::string_view line : split(text, '\n')) {
        const size_t found = line.find(key);
        if (found == line.npos) continue;
        const std::string_view number = line.substr(found + key.size());
        sum += parse_number<uint64_t>(number.substr(0, number.find(' '))).value_or(0);
    }
    return sum;
}

}  // namespace

std::optional<uint64_t> measure_cpu(const CgroupPath& place) {
    const auto control = read_either(place, "cpu.stat", "cpuacct.usage");
    if (!control) return std::nullopt;
    if (!control->v1) return event_count(control->text, "usage_usec");
    const auto nanoseconds = parse_number<uint64_t>(first_line(control->text));
    return nanoseconds ? std::optional(*nanoseconds / kNanoseconds) : std::nullopt;
}

GroupUsage measure_usage(const CgroupPath& place) {
    GroupUsage usage;
    usage.cpu_usec = measure_cpu(place);
    usage.peak_memory = number_in(place, "memory.peak", "memory.max_usage_in_bytes");
    usage.peak_processes = number_in(place, "pids.peak", "pids.peak");
    if (const auto io = read_either(place, "io.stat", "blkio.throttle.io_service_bytes_recursive")) {
        usage.read_bytes = sum_of(io->text, io->v1 ? " Read " : " rbytes=");
        // v1 counts only what is written past the page cache: a sum without most of it is none.
        if (!io->v1) usage.written_bytes = sum_of(io->text, " wbytes=");
    }
    if (const auto cpu = read_either(place, "cpu.stat", "cpu.stat");
        cpu && cpu->text.find("nr_throttled") != cpu->text.npos)
        usage.throttled = event_count(cpu->text, "nr_throttled");
    if (const auto forks = read_either(place, "pids.events", "pids.events"))
        usage.refused_forks = event_count(forks->text, "max");
    return usage;
}

std::optional<GroupLimit> read_limit(const CgroupPath& place, const std::string& v2_file, const std::string& v1_file) {
    const auto control = read_either(place, v2_file, v1_file);
    if (!control) return std::nullopt;
    return GroupLimit{std::string(first_line(control->text)), control->v1};
}

// cgroup v1 does not tell whose limit it was; one that was never reached was not the reason. Newer kernels do not count
// what was refused: then the highest use has come as near as what is charged at once.
static bool was_reached(const CgroupPath& place, const std::string& counter) {
    constexpr uint64_t kChargedAtOnce = 64UL * 4096;
    const auto peak = number_in(place, {}, counter + "max_usage_in_bytes");
    const auto limit = number_in(place, {}, counter + "limit_in_bytes");
    return number_in(place, {}, counter + "failcnt").value_or(0) != 0 ||
           (peak && limit && *peak + kChargedAtOnce > *limit);
}

OomCount count_oom(const CgroupPath& place) {
    const auto events = read_either(place, "memory.events", "memory.oom_control");
    const auto limit = read_either(place, "memory.max", "memory.limit_in_bytes");
    if (!events || !limit) return {};
    OomCount count{event_count(events->text, "oom_kill"), event_count(events->text, "oom") != 0,
                   parse_number<uint64_t>(first_line(limit->text)).value_or(0)};
    if (!events->v1) return count;
    if (!number_in(place, {}, "memory.failcnt")) return {};
    // That of memory and swap together is reached first where both are the same.
    const bool with_swap = !was_reached(place, "memory.") && was_reached(place, "memory.memsw.");
    count.at_limit = count.kills != 0 && (with_swap || was_reached(place, "memory."));
    const auto swap_limit = number_in(place, {}, "memory.memsw.limit_in_bytes");
    count.with_swap = with_swap && swap_limit && *swap_limit != count.limit;
    if (count.with_swap) count.limit = *swap_limit;
    return count;
}

namespace {

constexpr const char* kPure = "/sys/fs/cgroup";
constexpr const char* kHybrid = "/sys/fs/cgroup/unified";

constexpr std::string_view kV1Controllers[] = {"blkio",      "cpu",     "cpuacct", "cpuset",  "devices",
                                               "freezer",    "hugetlb", "memory",  "net_cls", "net_prio",
                                               "perf_event", "pids",    "rdma"};

// What is simply not there, or not for us, is an answer. Anything else is none: limits must not go by a guess.
Result<bool> answer(bool yes, const char* call, const std::string& path) {
    constexpr int kAnswers[] = {ENOENT, ENOTDIR, EACCES, EPERM, EROFS};
    if (yes || std::ranges::find(kAnswers, errno) != std::end(kAnswers)) return yes;
    return errno_error(concat(call, " ", path));
}

Result<bool> is_mounted(const std::string& path, long magic) {
    struct statfs info {};
    const bool there = TRY(answer(::statfs(path.c_str(), &info) == 0, "statfs", path));
    return there && info.f_type == magic;
}

// Controllers that share a hierarchy are links to where it is mounted: cpu -> cpu,cpuacct.
std::string follow(const std::string& path) {
    const std::string target = link_target(path);
    if (target.empty()) return path;
    return target.starts_with('/') ? target : concat(kPure, '/', target);
}

Result<StringMap> find_v1() {
    StringMap found;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(kPure), ::closedir);
    TRY(answer(entries != nullptr, "open", kPure));
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (std::ranges::find(kV1Controllers, name) == std::end(kV1Controllers)) continue;
        const std::string path = concat(kPure, '/', name);
        if (!TRY(is_mounted(path, CGROUP_SUPER_MAGIC))) continue;
        found[std::string(name)] = entry->d_type == DT_DIR ? path : follow(path);
    }
    return found;
}

Result<bool> is_writable(const std::string& path) {
    return answer(::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0, "access", path);
}

// The uppermost group around this process that somebody has given to this user: there, processes may be moved between
// groups and groups be made. Empty: none is.
Result<std::string> find_delegated(const std::string& mount) {
    const Result<std::string> own = group_of(::getpid());
    if (!own && own.error().code != 0 && own.error().code != ENOENT) return own.error();
    if (!own || own->size() < 2) return std::string();
    for (size_t end = own->find('/', 1);; end = own->find('/', end + 1)) {
        const std::string group = own->substr(0, end);
        if (TRY(is_writable(mount + group)) && TRY(is_writable(concat(mount, group, "/cgroup.procs")))) return group;
        if (end == std::string::npos) return std::string();
    }
}

// As sd_booted(3) has it.
constexpr const char* kSystemRuntime = "/run/systemd/system";

bool user_manager_runs() {
    const char* runtime = ::getenv("XDG_RUNTIME_DIR");
    return runtime != nullptr && ::access(concat(runtime, "/systemd").c_str(), F_OK) == 0;
}

// "0 1000 1": three numbers between blanks.
std::vector<uint32_t> numbers_of(std::string_view line) {
    std::vector<uint32_t> numbers;
    for (const std::string_view word : split(line, ' ')) {
        if (const auto number = parse_number<uint32_t>(word)) numbers.push_back(*number);
    }
    return numbers;
}

}  // namespace

Result<CgroupHost> find_cgroup_host() {
    CgroupHost host;
    if (TRY(is_mounted(kPure, CGROUP2_SUPER_MAGIC))) host.mount = kPure;
    else host.v1 = TRY(find_v1());
    if (host.mount.empty() && TRY(is_mounted(kHybrid, CGROUP2_SUPER_MAGIC))) host.mount = kHybrid;
    host.hybrid = host.mount == kHybrid;
    if (host.hybrid && !host.v1.empty()) {
        host.controllers = TRY(read_control(AT_FDCWD, concat(host.mount, "/cgroup.controllers")));
    }
    const std::string& top = host.mount.empty() && !host.v1.empty() ? host.v1.begin()->second : host.mount;
    host.writable = !top.empty() && TRY(is_writable(top));
    if (host.writable || host.mount.empty()) return host;
    host.home = TRY(find_delegated(host.mount));
    host.writable = !host.home.empty();
    if (host.writable) host.v1.clear();  // nobody delegates those: it would not be safe
    return host;
}

std::string system_manager_top(std::string_view group_of_init) {
    constexpr std::string_view kOwnScope = "/init.scope";
    if (group_of_init.ends_with(kOwnScope)) group_of_init.remove_suffix(kOwnScope.size());
    return group_of_init == "/" ? std::string() : std::string(group_of_init);
}

std::string user_manager_top(std::string_view system_top, uid_t uid) {
    return concat(system_top, "/user.slice/user-", uid, ".slice/user@", uid, ".service");
}

uid_t uid_on_host(std::string_view uid_map, uid_t uid) {
    for (const std::string_view line : split(uid_map, '\n')) {
        const std::vector<uint32_t> range = numbers_of(line);
        if (range.size() == 3 && uid >= range[0] && uid - range[0] < range[2]) return range[1] + (uid - range[0]);
    }
    return uid;
}

SystemdHost find_systemd_host(bool user) {
    SystemdHost host;
    host.user = user;
    host.running = ::access(kSystemRuntime, F_OK) == 0 && (!user || user_manager_runs());
    // Where other users' processes are hidden, the group is taken for the one that it is everywhere.
    const Result<std::string> init = group_of(1);
    if (init) host.top = system_manager_top(*init);
    if (!user) return host;
    const Result<std::string> map = read_file("/proc/self/uid_map");
    host.top = user_manager_top(host.top, map ? uid_on_host(*map, ::geteuid()) : ::geteuid());
    return host;
}

}  // namespace pinfold
