// The process section of config.json, which is also a document of its own for exec.
#include "spec/parse.hpp"

namespace pinfold {

static void read(const Reader& object, ConsoleSize& size) {
    object.required("height", size.height);
    object.required("width", size.width);
}

static void read(const Reader& object, User& user) {
    object.optional("uid", user.uid);
    object.optional("gid", user.gid);
    object.optional("umask", user.umask);
    object.optional("additionalGids", user.additional_gids);
}

static void read(const Reader& object, Capabilities& capabilities) {
    object.optional("bounding", capabilities.bounding);
    object.optional("effective", capabilities.effective);
    object.optional("permitted", capabilities.permitted);
    object.optional("inheritable", capabilities.inheritable);
    object.optional("ambient", capabilities.ambient);
}

static void read(const Reader& object, Rlimit& rlimit) {
    object.required("type", rlimit.type);
    object.required("soft", rlimit.soft);
    object.required("hard", rlimit.hard);
}

static void read(const Reader& object, IoPriority& io_priority) {
    object.required("class", io_priority.io_class);
    object.optional("priority", io_priority.priority);
}

static void read(const Reader& object, Scheduler& scheduler) {
    object.required("policy", scheduler.policy);
    object.optional("nice", scheduler.nice);
    object.optional("priority", scheduler.priority);
    object.optional("flags", scheduler.flags);
    object.optional("runtime", scheduler.runtime);
    object.optional("deadline", scheduler.deadline);
    object.optional("period", scheduler.period);
}

static void read(const Reader& object, ExecCpuAffinity& affinity) {
    object.optional("initial", affinity.initial);
    object.optional("final", affinity.final);
}

void read(const Reader& object, Process& process) {
    object.optional("terminal", process.terminal);
    object.optional("consoleSize", process.console_size);
    object.optional("user", process.user);
    object.optional("args", process.args);
    object.optional("env", process.env);
    object.required("cwd", process.cwd);
    object.optional("capabilities", process.capabilities);
    object.optional("rlimits", process.rlimits);
    object.optional("noNewPrivileges", process.no_new_privileges);
    object.optional("apparmorProfile", process.apparmor_profile);
    object.optional("selinuxLabel", process.selinux_label);
    object.optional("oomScoreAdj", process.oom_score_adj);
    object.optional("ioPriority", process.io_priority);
    object.optional("scheduler", process.scheduler);
    object.optional("execCPUAffinity", process.exec_cpu_affinity);
}

Process parse_process(const Json& root, Problems& problems) {
    Process process;
    Reader(root, problems, nullptr).into(process);
    return process;
}

}  // namespace pinfold
