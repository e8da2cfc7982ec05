// What the systemd manager needs to know of this host.
#include "cgroup/systemd_host.hpp"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/processes.hpp"

namespace pinfold {

namespace {

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
