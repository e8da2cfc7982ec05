// pinfold-scope: asks systemd for what only systemd may do to its units. pinfold itself is static, which libsystemd
// cannot be; this program is started by it, for --cgroup-manager systemd only.
//
//     pinfold-scope --user|--system start UNIT PIDs=PID NAME=VALUE...    a new scope around the process
//     pinfold-scope --user|--system set UNIT NAME=VALUE...               until the unit ends
//     pinfold-scope --user|--system attach UNIT PIDs=PID                 one more process
//     pinfold-scope --user|--system stop UNIT                            with all that runs in it
//
// It ends with 0, or with one line on standard error.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/process.hpp"
#include "base/strings.hpp"
#include "scope/bus.hpp"
#include "scope/properties.hpp"

namespace pinfold {

namespace {

constexpr unsigned kPatienceSeconds = 10;
constexpr char kGaveUp[] = "systemd has not answered within 10 s\n";

struct Request {
    std::string unit;
    std::vector<UnitProperty> properties;
};

int append_properties(sd_bus_message* message, const std::vector<UnitProperty>& properties) {
    int result = ::sd_bus_message_open_container(message, 'a', "(sv)");
    for (const UnitProperty& property : properties) {
        if (result >= 0) result = append_property(message, property);
    }
    return result < 0 ? result : ::sd_bus_message_close_container(message);
}

// "fail": never in the place of a unit of that name that is about to end.
Result<void> start(Manager& manager, const Request& request) {
    return manager.run_job("StartTransientUnit", [&](sd_bus_message* message) {
        int result = ::sd_bus_message_append(message, "ss", request.unit.c_str(), "fail");
        if (result >= 0) result = append_properties(message, request.properties);
        return result < 0 ? result : ::sd_bus_message_append(message, "a(sa(sv))", 0);
    });
}

// Runtime only: a scope has no file that would outlive it.
Result<void> set(Manager& manager, const Request& request) {
    TRY(manager.call("SetUnitProperties", [&](sd_bus_message* message) {
        const int result = ::sd_bus_message_append(message, "sb", request.unit.c_str(), 1);
        return result < 0 ? result : append_properties(message, request.properties);
    }));
    return manager.settle(request.unit);
}

Result<void> attach(Manager& manager, const Request& request) {
    if (request.properties.size() != 1 || request.properties[0].name != "PIDs") return plain_error("which process?");
    const auto pid = static_cast<uint32_t>(std::get<pid_t>(request.properties[0].value));
    TRY(manager.call("AttachProcessesToUnit", [&](sd_bus_message* message) {
        return ::sd_bus_message_append(message, "ssau", request.unit.c_str(), "", 1, pid);
    }));
    return {};
}

// One that has ended meanwhile, as a scope does with its last process, is stopped. What had failed is forgotten.
Result<void> stop(Manager& manager, const Request& request) {
    const Result<void> stopped = manager.run_job("StopUnit", [&](sd_bus_message* message) {
        return ::sd_bus_message_append(message, "ss", request.unit.c_str(), "replace");
    });
    if (!stopped) return stopped.error().code == ENOENT ? Result<void>() : stopped;
    const auto forgotten = manager.call("ResetFailedUnit", [&](sd_bus_message* message) {
        return ::sd_bus_message_append(message, "s", request.unit.c_str());
    });
    if (!forgotten && forgotten.error().code != ENOENT) return forgotten.error();
    return {};
}

constexpr struct {
    std::string_view verb;
    Result<void> (*act)(Manager&, const Request&);
} kVerbs[] = {{"start", start}, {"set", set}, {"attach", attach}, {"stop", stop}};

Result<void> run(const std::vector<std::string_view>& words) {
    const auto verb = std::ranges::find(kVerbs, words.size() < 3 ? "" : words[1], [](const auto& v) { return v.verb; });
    if (verb == std::end(kVerbs)) return plain_error("this program is for pinfold to call");
    Request request{std::string(words[2]), {}};
    for (size_t i = 3; i < words.size(); ++i) request.properties.push_back(TRY(parse_property(words[i])));
    Manager manager = TRY(Manager::connect(words[0] == "--user"));
    return verb->act(manager, request);
}

void give_up(int) {
    [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, kGaveUp, sizeof kGaveUp - 1);
    ::_exit(1);
}

}  // namespace

}  // namespace pinfold

int main(int argc, char** argv) {
    using namespace pinfold;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // One deadline for connecting, asking and waiting alike; who started us may have blocked its signal.
    sigset_t deadline;
    ::sigemptyset(&deadline);
    ::sigaddset(&deadline, SIGALRM);
    ::signal(SIGALRM, give_up);
    ::sigprocmask(SIG_UNBLOCK, &deadline, nullptr);
    ::alarm(kPatienceSeconds);
    Result<void> done = fill_standard_streams();
    if (done) done = run({argv + 1, argv + argc});
    if (done) return 0;
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return 1;
}
