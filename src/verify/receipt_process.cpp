// The receipt's lines on the process itself: user, rights, resource limits, namespaces.
#include "verify/receipt.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr const char* kUnread = "cannot be read";

std::string with_single_blanks(std::string_view text) {
    std::string out;
    for (const char c : text) {
        const bool is_blank = c == ' ' || c == '\t';
        if (!is_blank) out += c;
        else if (!out.empty() && out.back() != ' ') out += ' ';
    }
    if (out.ends_with(' ')) out.pop_back();
    return out;
}

// Empty where it cannot be read: then nothing is as it was planned.
template <class Process>
std::string read_of(const Process& process, std::string_view file) {
    Result<std::string> text = read_file(concat("/proc/", process, '/', file));
    return text ? std::move(text).value() : std::string();
}

// /proc/PID/status
class ProcessStatus {
public:
    template <class Process>
    explicit ProcessStatus(const Process& process) : text_(read_of(process, "status")) {}
    std::string value(std::string_view name) const {
        for (const std::string_view line : split(text_, '\n')) {
            if (line.starts_with(name) && line.substr(name.size()).starts_with(':'))
                return with_single_blanks(line.substr(name.size() + 1));
        }
        return kUnread;
    }

private:
    std::string text_;
};

uint32_t on_host(const std::vector<IdRange>& ranges, uint32_t id) {
    constexpr uint32_t kNobody = 65534;
    for (const IdRange& range : ranges) {
        if (id >= range.inside && id - range.inside < range.count) return range.outside + (id - range.inside);
    }
    return kNobody;
}

std::string four_times(uint32_t id) { return concat(id, ' ', id, ' ', id, ' ', id); }

void add_identity(const Identity& identity, const IdMaps* maps, const ProcessStatus& status, Receipt& receipt) {
    const auto uid = maps ? on_host(maps->uids, identity.uid) : identity.uid;
    const auto gid = maps ? on_host(maps->gids, identity.gid) : identity.gid;
    receipt.push_back(equal_line("user", four_times(uid), status.value("Uid")));
    receipt.push_back(equal_line("group", four_times(gid), status.value("Gid")));
    if (!identity.set_groups) return;
    std::vector<gid_t> groups;
    for (const gid_t one : identity.groups) groups.push_back(maps ? on_host(maps->gids, one) : one);
    std::ranges::sort(groups);
    std::vector<std::string> words;
    for (const gid_t one : groups) words.push_back(std::to_string(one));
    receipt.push_back(equal_line("groups", join(words, " "), status.value("Groups")));
}

std::string as_mask(uint64_t set) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text(16, '0');
    for (size_t i = text.size(); i-- > 0; set >>= 4) text[i] = kDigits[set & 15];
    return text;
}

void add_capabilities(const CapabilitySets& sets, const ProcessStatus& status, Receipt& receipt) {
    receipt.push_back(equal_line("capabilities.bounding", as_mask(sets.bounding), status.value("CapBnd")));
    receipt.push_back(equal_line("capabilities.effective", as_mask(sets.effective), status.value("CapEff")));
    receipt.push_back(equal_line("capabilities.permitted", as_mask(sets.permitted), status.value("CapPrm")));
    receipt.push_back(equal_line("capabilities.inheritable", as_mask(sets.inheritable), status.value("CapInh")));
    receipt.push_back(equal_line("capabilities.ambient", as_mask(sets.ambient), status.value("CapAmb")));
}

// Both are inherited: what we are bound by ourselves, the payload is as well.
void add_promises(bool no_new_privileges, bool filtered, const ProcessStatus& status, Receipt& receipt) {
    const ProcessStatus own("self");
    const bool expected = no_new_privileges || own.value("NoNewPrivs") == "1";
    receipt.push_back(equal_line("no_new_privs", expected ? "1" : "0", status.value("NoNewPrivs")));
    const uint32_t filters = parse_number<uint32_t>(own.value("Seccomp_filters")).value_or(0) + (filtered ? 1 : 0);
    receipt.push_back(equal_line("seccomp.mode", filters > 0 ? "2" : "0", status.value("Seccomp")));
    receipt.push_back(equal_line("seccomp.filters", std::to_string(filters), status.value("Seccomp_filters")));
}

std::string limit_word(rlim_t value) { return value == RLIM_INFINITY ? "unlimited" : std::to_string(value); }

// A hard limit that we could not raise stays below what was planned, which takes nothing from the protection.
bool is_at_most(std::string_view found, rlim_t planned) {
    if (found == "unlimited") return planned == RLIM_INFINITY;
    const std::optional<rlim_t> number = parse_number<rlim_t>(found);
    return number && *number <= planned;
}

// From /proc/PID/limits, which everybody may read: "Max open files   1024   4096   files".
void add_rlimit(const ResourceLimit& wanted, std::string_view limits, Receipt& receipt) {
    const std::string planned = concat(limit_word(wanted.limit.rlim_cur), ' ', limit_word(wanted.limit.rlim_max));
    for (const std::string_view line : split(limits, '\n')) {
        const std::string_view title = rlimit_title(wanted.resource);
        if (!line.starts_with(title)) continue;
        const std::string values = with_single_blanks(line.substr(title.size()));
        const std::vector<std::string_view> words = split(values, ' ');
        if (words.size() < 2) break;
        const bool holds = is_at_most(words[0], wanted.limit.rlim_cur) && is_at_most(words[1], wanted.limit.rlim_max);
        receipt.push_back({wanted.name, planned, concat(words[0], ' ', words[1]), holds});
        return;
    }
    receipt.push_back({wanted.name, planned, kUnread, false});
}

struct NamespaceFile {
    uint64_t flag;
    const char* name;
};
constexpr NamespaceFile kNamespaces[] = {
    {CLONE_NEWCGROUP, "cgroup"}, {CLONE_NEWIPC, "ipc"},     {CLONE_NEWNS, "mnt"},    {CLONE_NEWNET, "net"},
    {CLONE_NEWPID, "pid"},       {0x80 /* TIME */, "time"}, {CLONE_NEWUSER, "user"}, {CLONE_NEWUTS, "uts"},
};

// 0: there is none.
ino_t namespace_at(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

template <class Process>
ino_t namespace_of(const Process& process, const char* name) {
    return namespace_at(concat("/proc/", process, "/ns/", name));
}

std::map<uint64_t, ino_t> joined_namespaces(const NamespacePlan& plan) {
    std::map<uint64_t, ino_t> joined;
    for (const NamespaceToJoin& one : plan.join) joined[one.flag] = namespace_at(one.path);
    return joined;
}

}  // namespace

void add_process_lines(const ProcessPlan& plan, bool filtered, const IdMaps* maps, bool ids_known, pid_t pid,
                       Receipt& receipt) {
    const ProcessStatus status(pid);
    // The kernel tells ids as they are in the reader's user namespace, which a normal user joins for exec.
    if (namespace_of("self", "user") == namespace_of(pid, "user")) maps = nullptr;
    if (ids_known) add_identity(plan.identity, maps, status, receipt);
    add_capabilities(plan.capabilities, status, receipt);
    add_promises(plan.no_new_privileges, filtered, status, receipt);
    const std::string limits = plan.rlimits.empty() ? "" : read_of(pid, "limits");
    for (const ResourceLimit& limit : plan.rlimits) add_rlimit(limit, limits, receipt);
}

// The kernel sorts the lines of long maps.
void add_id_map_lines(const IdMaps& maps, pid_t pid, Receipt& receipt) {
    const auto sorted = [](const std::string& text) {
        std::vector<std::string> lines;
        for (const std::string_view line : split(text, '\n')) {
            if (!line.empty()) lines.push_back(with_single_blanks(line));
        }
        std::ranges::sort(lines);
        return join(lines, ", ");
    };
    receipt.push_back(equal_line("uid_map", sorted(id_map_lines(maps.uids)), sorted(read_of(pid, "uid_map"))));
    receipt.push_back(equal_line("gid_map", sorted(id_map_lines(maps.gids)), sorted(read_of(pid, "gid_map"))));
}

void add_namespace_line(const NamespacePlan& plan, pid_t pid, Receipt& receipt) {
    const std::map<uint64_t, ino_t> joined = joined_namespaces(plan);
    std::vector<std::string> planned, found;
    for (const NamespaceFile& one : kNamespaces) {
        const ino_t own = namespace_of("self", one.name), actual = namespace_of(pid, one.name);
        if (own == 0) continue;  // the kernel has no such kind
        const auto target = joined.find(one.flag);
        const bool is_joined = target != joined.end();
        const bool is_new = plan.creates(one.flag) || (plan.create_time && std::string_view(one.name) == "time");
        planned.push_back(concat(one.name, is_joined ? "=joined" : is_new ? "=new" : "=own"));
        const bool as_joined = is_joined && actual == target->second;
        found.push_back(concat(one.name, actual == 0 ? "=?" : as_joined ? "=joined" : actual == own ? "=own" : "=new"));
    }
    receipt.push_back(equal_line("namespaces", join(planned, " "), join(found, " ")));
}

void add_joined_line(uint64_t namespaces, pid_t init, pid_t pid, Receipt& receipt) {
    std::vector<std::string> planned, found;
    for (const NamespaceFile& one : kNamespaces) {
        if ((namespaces & one.flag) == 0) continue;
        planned.emplace_back(one.name);
        const ino_t wanted = namespace_of(init, one.name);
        if (wanted != 0 && namespace_of(pid, one.name) == wanted) found.emplace_back(one.name);
    }
    receipt.push_back(equal_line("namespaces", join(planned, " "), join(found, " ")));
}

}  // namespace pinfold
