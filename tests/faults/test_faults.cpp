// A fault at every system call of a verb: afterwards there is a container that is as it should be, or one clear error,
// and a forced delete leaves nothing.
#include "configs.hpp"
#include "sweep.hpp"

using namespace pinfold::integration;
using namespace pinfold::faults;

namespace {

std::string was_created(World& world) {
    const Ended started = world.verb({"start", "ID"});
    return started.status == 0 ? world.container_complaint() : "it cannot be started: " + started.err;
}

std::string is(World& world, const std::string& wanted) {
    const std::string status = world.status();
    return status == wanted ? "" : "it is " + status;
}

std::string was_started(World& world) {
    const std::string complaint = world.container_complaint();
    return complaint.empty() ? is(world, "running") : complaint;
}

std::string was_paused(World& world) { return is(world, "paused"); }
std::string is_running(World& world) { return is(world, "running"); }
std::string has_answered(World& world) { return world.verb_complaint(); }
std::string has_ended(World& world) { return world.end_complaint(); }

std::string was_deleted(World& world) {
    return fs::exists(world.bundle().state_root() / world.bundle().id()) ? "its state is left" : "";
}

std::string sees_limits(World& world) { return world.difference(world.verb(exec_words(limit_questions())).out); }

std::string was_copied_in(World& world) {
    return world.difference(world.verb({"exec", "ID", "/probe", "read", "/tmp/copy"}).out);
}

std::string was_copied_out(World& world) { return world.difference(read_text(world.bundle().host() / "copy")); }

std::string has_result(World& world) {
    if (const std::string complaint = world.verb_complaint(); !complaint.empty()) return complaint;
    const json result = json::parse(read_text(world.bundle().host() / "result"), nullptr, false);
    return result.is_object() && result.value("status", "") == "exited" ? "" : "no result: " + result.dump();
}

std::string has_delivered(World& world) {
    const std::string complaint = has_result(world);
    if (!complaint.empty()) return complaint;
    const json result = json::parse(read_text(world.bundle().host() / "result"));
    return result.contains("copy_failures") ? "" : was_copied_out(world);  // a copy that failed is told
}

// Output that the caller's terminal did not take is lost, on purpose: the container must not hang for it. What a
// deadline cuts off is lost, too.
std::string may_have_answered(World&) { return ""; }

const Words kRun = {"run", "--bundle", "BUNDLE", "ID"};
const Words kCreate = {"create", "--bundle", "BUNDLE", "ID"};
const Words kStart = {"start", "ID"};

}  // namespace

#define FAULTS(scenario_name, ...)                           \
    TEST_CASE("faults: " scenario_name) {                    \
        NEEDS_ROOT();                                        \
        PINFOLD_ONLY();                                      \
        sweep(Scenario{.name = scenario_name, __VA_ARGS__}); \
    }

FAULTS("run", .words = kRun, .configure = ends<plain>, .missing = has_answered)
FAULTS("run, filter not compiled", .words = kRun, .configure = ends<plain>, .missing = has_answered, .cold = true)
FAULTS("run, limits", .words = kRun, .configure = ends<limited>, .missing = has_answered)
FAULTS("run, user namespace", .words = kRun, .configure = ends<mapped>, .missing = has_answered)
FAULTS("run, rootless", .words = kRun, .configure = ends<rootless>, .missing = has_answered, .rootless = true)
FAULTS("run, hooks", .words = kRun, .configure = ends<hooked>, .missing = has_answered)
FAULTS("run, listener", .words = kRun, .configure = ends<listened>, .missing = has_answered, .listener = true)
FAULTS("run, joined pid namespace", .words = kRun, .configure = ends<among_others>, .missing = has_answered,
       .joined = true)
FAULTS("run, terminal", .words = kRun, .configure = on_terminal, .missing = may_have_answered, .terminal = true)

FAULTS("create", .words = kCreate, .configure = waits<plain>, .missing = was_created)
FAULTS("create, limits", .words = kCreate, .configure = waits<limited>, .missing = was_created)
FAULTS("create, user namespace", .words = kCreate, .configure = waits<mapped>, .missing = was_created)
FAULTS("create, rootless", .words = kCreate, .configure = waits<rootless>, .missing = was_created, .rootless = true)
FAULTS("create, joined pid namespace", .words = kCreate, .configure = waits<among_others>, .missing = was_created,
       .joined = true)
FAULTS("create, hooks", .words = kCreate, .configure = waits<hooked>, .missing = was_created)

FAULTS("create, console",
       .words = {"create", "--bundle", "BUNDLE", "--console-socket", "HOST/console", "--pid-file", "HOST/pid", "ID"},
       .configure = waits<with_terminal>, .missing = was_created, .console = true)

FAULTS("start", .before = Stage::created, .words = kStart, .configure = waits<plain>, .missing = was_started)
FAULTS("start, limits", .before = Stage::created, .words = kStart, .configure = waits<limited>, .missing = was_started)
FAULTS("start, rootless", .before = Stage::created, .words = kStart, .configure = waits<rootless>,
       .missing = was_started, .rootless = true)
FAULTS("start, hooks", .before = Stage::created, .words = kStart, .configure = waits<hooked>, .missing = was_started)
FAULTS("start, listener", .before = Stage::created, .words = kStart, .configure = waits<listened>,
       .missing = was_started, .listener = true)

FAULTS("exec", .before = Stage::running, .words = exec_words(), .configure = waits<plain>, .missing = has_answered)
FAULTS("exec, limits", .before = Stage::running, .words = exec_words(all_questions()), .configure = waits<limited>,
       .missing = has_answered)
FAULTS("exec, user namespace", .before = Stage::running, .words = exec_words(), .configure = waits<mapped>,
       .missing = has_answered)
FAULTS("exec, rootless", .before = Stage::running, .words = exec_words(), .configure = waits<rootless>,
       .missing = has_answered, .rootless = true)

FAULTS("exec, console", .before = Stage::running,
       .words = exec_words(questions(),
                           {"--tty", "--detach", "--console-socket", "HOST/console", "--pid-file", "HOST/pid"}),
       .configure = waits<plain>, .missing = has_answered, .console = true)

FAULTS("exec, result", .before = Stage::running,
       .words = exec_words(limit_questions(), {"--timeout", "60s", "--result", "HOST/result"}),
       .configure = waits<unfiltered>, .missing = has_result)

FAULTS("kill", .before = Stage::running, .words = {"kill", "ID", "KILL"}, .configure = waits<plain>,
       .missing = has_ended)
FAULTS("kill --all", .before = Stage::running, .words = {"kill", "--all", "ID", "KILL"}, .configure = waits<limited>,
       .missing = has_ended)
FAULTS("delete", .before = Stage::stopped, .words = {"delete", "ID"}, .configure = waits<plain>, .missing = was_deleted)
FAULTS("delete, limits", .before = Stage::stopped, .words = {"delete", "ID"}, .configure = waits<limited>,
       .missing = was_deleted)
FAULTS("delete, rootless", .before = Stage::stopped, .words = {"delete", "ID"}, .configure = waits<rootless>,
       .missing = was_deleted, .rootless = true)
FAULTS("delete, hooks", .before = Stage::stopped, .words = {"delete", "ID"}, .configure = waits<hooked>,
       .missing = was_deleted)
FAULTS("delete --force", .before = Stage::running, .words = {"delete", "--force", "ID"}, .configure = waits<limited>,
       .missing = was_deleted)
FAULTS("pause", .before = Stage::running, .words = {"pause", "ID"}, .configure = waits<limited>, .missing = was_paused)
FAULTS("resume", .before = Stage::paused, .words = {"resume", "ID"}, .configure = waits<limited>, .missing = is_running)
FAULTS("update", .before = Stage::running, .words = {"update", "--memory", "50M", "--pids-limit", "20", "ID"},
       .configure = waits<limited>, .missing = sees_limits)
FAULTS("cp in", .before = Stage::running, .words = {"cp", "HOST/there", "ID:/tmp/copy"}, .configure = waits<plain>,
       .missing = was_copied_in)
FAULTS("cp out", .before = Stage::running, .words = {"cp", "ID:/data/there", "HOST/copy"}, .configure = waits<plain>,
       .missing = was_copied_out)
FAULTS("sandbox", .words = sandbox_words(), .configure = waits<plain>, .missing = has_answered)
FAULTS("sandbox, rootless", .words = sandbox_words(), .configure = waits<rootless>, .missing = has_answered,
       .rootless = true)
FAULTS("sandbox, files",
       .words = sandbox_words({"--copy-in", "HOST/there:/workspace/there", "--copy-out", "/workspace/there:HOST/copy",
                               "--result", "HOST/result"}),
       .configure = waits<plain>, .missing = has_delivered)
// Whatever fails, it does not run for longer.
FAULTS("sandbox, deadlines",
       .words = {"sandbox", "--name", "ID", "--rootfs", "BUNDLE/rootfs", "--timeout", "200ms", "--cpu-timeout", "10s",
                 "--", "/probe", "wait-signal"},
       .configure = waits<plain>, .missing = may_have_answered, .status = 124)
FAULTS("sandbox, detached", .words = {"sandbox", "--name", "ID", "--rootfs", "BUNDLE/rootfs", "--detach"},
       .configure = waits<plain>, .missing = is_running)
