// A fault at every system call of a verb: afterwards there is a container that is as it should be, or one clear error,
// and a forced delete leaves nothing.
#include "sweep.hpp"

using namespace pinfold::integration;
using namespace pinfold::faults;

namespace {

// All that can be asked for and seen from inside, so that a step that was left out shows.
const std::vector<Command> kQuestions = {
    {"report"},
    {"read", "/proc/sys/net/core/somaxconn"},
    {"open", "/proc/sysrq-trigger", "wo"},
    {"read", "/proc/keys"},
    {"create", "/written", "x"},
    {"open", "/dev/null", "rw"},
    {"syscall", "41", "16", "3"},  // socket(AF_NETLINK), which the filter denies
};

void restrict(Bundle& bundle) {
    json& config = bundle.config;
    config["root"]["readonly"] = true;
    config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}, {"additionalGids", {7}}, {"umask", 63}};
    config["process"]["oomScoreAdj"] = 100;
    config["process"]["ioPriority"] = {{"class", "IOPRIO_CLASS_BE"}, {"priority", 6}};
    config["linux"]["sysctl"] = {{"net.core.somaxconn", "77"}};
    config["linux"]["seccomp"] = {
        {"defaultAction", "SCMP_ACT_ALLOW"},
        {"architectures", {"SCMP_ARCH_X86_64"}},
        {"syscalls", json::array({{{"names", {"socket"}},
                                   {"action", "SCMP_ACT_ERRNO"},
                                   {"args", json::array({{{"index", 0}, {"value", 16}, {"op", "SCMP_CMP_EQ"}}})}}})}};
    config["linux"].erase("resources");
    bundle.bind(bundle.host(), "/data", {"ro"});
}

std::vector<Command> with_wait(std::vector<Command> commands) {
    commands.push_back({"wait-signal"});
    return commands;
}

void waits(Bundle& bundle) {
    restrict(bundle);
    bundle.probe_each(with_wait(kQuestions));
}

void ends(Bundle& bundle) {
    restrict(bundle);
    bundle.probe_each(kQuestions);
}

Words exec_words() {
    Words words = {"exec", "ID", "/probe"};
    for (const Command& command : kQuestions) {
        words.insert(words.end(), command.begin(), command.end());
        words.push_back(";");
    }
    return words;
}

std::string is_created(World& world) {
    const Ended started = world.verb({"start", "ID"});
    return started.status == 0 ? world.container_complaint() : "it cannot be started: " + started.err;
}

std::string is_running(World& world) {
    const std::string complaint = world.container_complaint();
    if (!complaint.empty()) return complaint;
    const std::string status = world.status();
    return status == "running" ? "" : "it is " + status;
}

std::string has_answered(World& world) { return world.verb_complaint(); }

}  // namespace

#define FAULTS(scenario_name, ...)                           \
    TEST_CASE("faults: " scenario_name) {                    \
        NEEDS_ROOT();                                        \
        PINFOLD_ONLY();                                      \
        sweep(Scenario{.name = scenario_name, __VA_ARGS__}); \
    }

FAULTS("run", .words = {"run", "--bundle", "BUNDLE", "ID"}, .configure = ends, .missing = has_answered)
FAULTS("create", .words = {"create", "--bundle", "BUNDLE", "ID"}, .configure = waits, .missing = is_created)
FAULTS("start", .before = Stage::created, .words = {"start", "ID"}, .configure = waits, .missing = is_running)
FAULTS("exec", .before = Stage::running, .words = exec_words(), .configure = waits, .missing = has_answered)
