// What is measured. The state directories lie on the benchmark's tmpfs, as /run does on most machines.
#include "scenarios.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "bundle.hpp"

namespace pinfold::bench {

namespace {

using Arguments = std::vector<std::string>;

constexpr uid_t kNormalUser = 65000;
constexpr int kBatch = 64;
constexpr int kAtOnce = 8;
constexpr int kListed = 1000;
const Arguments kNoCgroup = {"--cgroup-manager", "disabled"};

Arguments words(std::string_view text) {
    Arguments result;
    for (const std::string_view word : split(text, ' ')) result.emplace_back(word);
    return result;
}

Arguments joined(Arguments list, const Arguments& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
}

std::string why_not(const std::string& program) { return program.empty() ? "not installed" : ""; }

// A scenario of one command.
Scenario plain(const std::string& name, const std::string& program,
               const std::function<Command(const std::string& id)>& command) {
    Scenario scenario{name, why_not(program)};
    scenario.command = command;
    scenario.once = [command](Runner& runner, const std::string& id) { return runner.run(command(id)); };
    return scenario;
}

Scenario plain(const std::string& name, const std::string& program, const Arguments& arguments, uid_t user = 0) {
    return plain(name, program, [=](const std::string&) { return Command{joined({program}, arguments), false, user}; });
}

// pinfold, crun and runc share these verbs and options.
struct Runtime {
    std::string name;
    std::string program;
    std::string root;
    Arguments globals;
    bool pretend_memlock = false;

    Command command(const Arguments& arguments) const {
        Arguments argv = joined({program}, globals);
        argv.insert(argv.end(), {"--root", root});
        return {joined(std::move(argv), arguments), pretend_memlock};
    }
};

Result<pid_t> read_pid(const std::string& file) {
    const std::string text = TRY(read_file(file));
    const auto pid = parse_number<pid_t>(text.substr(0, text.find_last_not_of('\n') + 1));
    if (!pid) return plain_error(concat(file, ": no pid: ", quoted(text)));
    return *pid;
}

// Containers whose creator has ended are children of ours: see PR_SET_CHILD_SUBREAPER in main.cpp.
Result<void> await_end(pid_t pid) {
    if (::waitpid(pid, nullptr, 0) != pid) return errno_error(concat("waitpid ", pid));
    return {};
}

struct Created {
    Sample sample;
    pid_t pid;
};

Result<Created> create(Runner& runner, const Runtime& runtime, const std::string& bundle, const std::string& id) {
    const std::string pid_file = concat(runtime.root, ".pid");
    ::unlink(pid_file.c_str());
    const Sample sample = TRY(runner.run(runtime.command({"create", "--bundle", bundle, "--pid-file", pid_file, id})));
    return Created{sample, TRY(read_pid(pid_file))};
}

Result<void> remove(Runner& runner, const Runtime& runtime, const std::string& id, pid_t pid) {
    ::kill(pid, SIGKILL);
    TRY(await_end(pid));
    TRY(runner.run(runtime.command({"delete", id})));
    return {};
}

Scenario run_scenario(const Runtime& runtime, const std::string& name, const std::string& bundle) {
    return plain(concat(runtime.name, ": ", name), runtime.program, [=](const std::string& id) {
        return runtime.command({"run", "--bundle", bundle, id});
    });
}

// What lies between start and delete is the payload's time.
Scenario life_cycle(const Runtime& runtime, const std::string& bundle) {
    Scenario scenario{concat(runtime.name, ": create, start, delete"), why_not(runtime.program)};
    scenario.once = [=](Runner& runner, const std::string& id) -> Result<Sample> {
        auto [sum, pid] = TRY(create(runner, runtime, bundle, id));
        const Sample started = TRY(runner.run(runtime.command({"start", id})));
        TRY(await_end(pid));
        const Sample deleted = TRY(runner.run(runtime.command({"delete", id})));
        sum.add(started);
        sum.add(deleted);
        return sum;
    };
    return scenario;
}

Scenario exec_scenario(const Runtime& runtime, const std::string& bundle) {
    Scenario scenario = plain(concat(runtime.name, ": exec"), runtime.program, [=](const std::string&) {
        return runtime.command({"exec", "waiting", "/bin/true"});
    });
    const auto pid = std::make_shared<pid_t>(-1);
    scenario.prepare = [=](Runner& runner) -> Result<void> {
        *pid = TRY(create(runner, runtime, bundle, "waiting")).pid;
        TRY(runner.run(runtime.command({"start", "waiting"})));
        return {};
    };
    scenario.clean_up = [=](Runner& runner) { return remove(runner, runtime, "waiting", *pid); };
    return scenario;
}

Scenario at_once_scenario(const Scenario& one) {
    Scenario scenario = plain(concat(one.name, ", 8 at once"), "-", [inner = one.command](const std::string&) {
        Command command = inner("@");
        command.times = kBatch;
        command.at_once = kAtOnce;
        return command;
    });
    scenario.skip_reason = one.skip_reason;
    scenario.counts_calls = false;
    scenario.every = 10;
    return scenario;
}

// What one container keeps for itself while it waits for start: pages that no other process shares.
Result<double> private_kb(pid_t pid) {
    const std::string text = TRY(read_file(concat("/proc/", pid, "/smaps_rollup")));
    double sum = 0;
    for (const std::string_view line : split(text, '\n')) {
        if (!line.starts_with("Private_Clean:") && !line.starts_with("Private_Dirty:")) continue;
        Arguments fields = words(line);
        std::erase(fields, "");
        sum += parse_number<int>(fields.at(1)).value_or(0);
    }
    return sum;
}

Scenario waiting_scenario(const Runtime& runtime, const std::string& bundle) {
    Scenario scenario{concat(runtime.name, ": waits"), why_not(runtime.program)};
    scenario.every = 20;
    scenario.counts_calls = false;
    scenario.once = [=](Runner& runner, const std::string& id) -> Result<Sample> {
        auto [sample, pid] = TRY(create(runner, runtime, bundle, id));
        sample.memory_kb = TRY(private_kb(pid));
        TRY(remove(runner, runtime, id, pid));
        return sample;
    };
    return scenario;
}

// Created, not started: that is all of a container that a list can tell of.
Scenario list_scenario(const Runtime& runtime, const std::string& bundle) {
    Scenario scenario = plain(concat(runtime.name, ": list"), runtime.program,
                              [=](const std::string&) { return runtime.command({"list"}); });
    scenario.phase = Phase::many_containers;
    scenario.every = 5;
    const auto pids = std::make_shared<std::vector<pid_t>>();
    scenario.prepare = [=](Runner& runner) -> Result<void> {
        for (int i = 0; i < kListed; i++) {
            pids->push_back(TRY(create(runner, runtime, bundle, concat("listed-", i))).pid);
        }
        return {};
    };
    scenario.clean_up = [=](Runner& runner) -> Result<void> {
        for (size_t i = 0; i < pids->size(); i++) TRY(remove(runner, runtime, concat("listed-", i), pids->at(i)));
        return {};
    };
    return scenario;
}

// The smallest memory.max with which the bundle runs three times in a row, to 32 KiB.
Scenario smallest_memory_scenario(const Runtime& runtime, const BundleOptions& bundle) {
    Scenario scenario{concat(runtime.name, ": smallest memory limit"), why_not(runtime.program), Phase::own_cgroups};
    scenario.every = 0;
    scenario.counts_calls = false;
    scenario.once = [=](Runner& runner, const std::string& id) -> Result<Sample> {
        constexpr long kStep = 32;
        int attempt = 0;
        std::string failure;
        const auto runs_with = [&](long limit_kb) {
            BundleOptions options = bundle;
            options.memory_limit = limit_kb * 1024;
            if (!make_bundle(options)) return false;
            for (int i = 0; i < 3; i++) {
                const Command run = runtime.command({"run", "--bundle", options.directory, concat(id, "-", attempt++)});
                const auto sample = runner.run(run);
                if (!sample) failure = sample.error().message;
                if (!sample) return false;
            }
            return true;
        };
        long fails = 0;
        long works = 64 * 1024;
        if (!runs_with(works)) return plain_error(failure);
        while (works - fails > kStep) {
            const long middle = (works + fails) / 2 / kStep * kStep;
            (runs_with(middle) ? works : fails) = middle;
        }
        return Sample{.memory_kb = static_cast<double>(works)};
    };
    return scenario;
}

Scenario many_sandboxes(const Runtime& runtime, int count, bool wanted) {
    Scenario scenario{concat("pinfold: ", count, " sandboxes at once"), wanted ? "" : "it takes long: --slow",
                      Phase::own_cgroups};
    scenario.every = 0;
    scenario.counts_calls = false;
    scenario.once = [=](Runner& runner, const std::string&) {
        Command command = runtime.command({"sandbox", "--name", "@", "--", "true"});
        command.times = command.at_once = count;
        return runner.run(command);
    };
    return scenario;
}

// As near to the bundle as bwrap's options come: no masked paths, no rlimit, sysfs by bind mount.
Scenario bwrap_bundle(const std::string& program, const std::string& rootfs) {
    Arguments arguments = words("--unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup --as-pid-1");
    arguments = joined(arguments, words("--new-session --hostname bench --cap-drop ALL --cap-add CAP_AUDIT_WRITE"));
    arguments = joined(arguments, words("--cap-add CAP_KILL --cap-add CAP_NET_BIND_SERVICE"));
    arguments = joined(arguments, {"--ro-bind", rootfs, "/"});
    arguments = joined(arguments,
                       words("--proc /proc --dev /dev --mqueue /dev/mqueue --ro-bind /sys /sys --chdir / /bin/true"));
    return plain("bwrap: run", program, arguments);
}

// strace would be in the way of newuidmap(1), and is not needed twice. Root's limits need the machine's controllers.
Scenario as_sandbox(Scenario scenario, uid_t user) {
    scenario.counts_calls = user == 0;
    if (user == 0) scenario.phase = Phase::own_cgroups;
    return scenario;
}

// The namespaces and the view of the machine that `pinfold sandbox` has; no limits, filter, Landlock or receipt.
Scenario bwrap_sandbox(const std::string& program, const std::string& name, const Arguments& command, uid_t user) {
    Arguments arguments = words(
        "--unshare-user --unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup --uid 1000 --gid 1000 "
        "--new-session --die-with-parent --hostname sandbox --ro-bind /usr /usr --ro-bind /etc/alternatives "
        "/etc/alternatives --symlink usr/bin /bin --symlink usr/sbin /sbin --symlink usr/lib /lib --symlink usr/lib64 "
        "/lib64 --proc /proc --dev /dev --tmpfs /tmp --tmpfs /workspace --chdir /workspace");
    return as_sandbox(plain(name, program, joined(std::move(arguments), command), user), user);
}

Scenario sandbox(const Runtime& runtime, const std::string& name, const Arguments& command, uid_t user) {
    Scenario scenario = plain(name, runtime.program, [=](const std::string&) {
        Command line = runtime.command(joined({"sandbox", "--"}, command));
        line.user = user;
        return line;
    });
    return as_sandbox(scenario, user);
}

Scenario floor_with_cgroup(const Surroundings& at, const std::string& rootfs) {
    const std::string directory = concat("/sys/fs/cgroup/", at.cgroup);
    Scenario scenario =
        plain("floor: run with a cgroup", at.programs.floor, {"--cgroup", directory, rootfs, "/bin/true"});
    if (!at.workplace.has_cgroup2()) scenario.skip_reason = "no cgroup v2 hierarchy";
    return scenario;
}

Result<std::string> directory_of(const Surroundings& at, const std::string& name, uid_t user = 0) {
    const std::string path = concat(at.workplace.directory(), "/", name);
    if (::mkdir(path.c_str(), 0755) != 0) return errno_error(concat("mkdir ", path));
    if (::chown(path.c_str(), user, user) != 0) return errno_error(concat("chown ", path));
    return path;
}

}  // namespace

std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    const std::string places = concat(path != nullptr ? path : "", ":/usr/sbin:/usr/bin:/sbin:/bin");
    for (const std::string_view place : split(places, ':')) {
        const std::string candidate = concat(place, "/", name);
        if (!place.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return "";
}

Result<std::vector<Scenario>> list_scenarios(const Surroundings& at) {
    const Programs& programs = at.programs;
    const std::string top = at.workplace.directory();
    const BundleOptions quick{top + "/bundle", programs.payload, programs.waiter, "/" + at.cgroup};
    BundleOptions waits = quick;
    waits.directory = top + "/bundle-waits";
    waits.program = "/bin/wait";
    BundleOptions docker = quick;
    docker.directory = top + "/bundle-docker";
    docker.seccomp = TRY(seccomp_section(programs.docker_config));
    BundleOptions limited = quick;
    limited.directory = top + "/bundle-limited";
    for (const BundleOptions& bundle : {quick, waits, docker, limited}) TRY(make_bundle(bundle));

    const auto runtime = [&](const char* name, const std::string& program,
                             const Arguments& globals) -> Result<Runtime> {
        return Runtime{name, program, TRY(directory_of(at, concat("state-", name, globals.size()))), globals};
    };
    const Runtime pinfold = TRY(runtime("pinfold", programs.pinfold, kNoCgroup));
    const Runtime crun = TRY(runtime("crun", programs.crun, kNoCgroup));
    const Runtime new_crun = TRY(runtime("new crun", programs.new_crun, kNoCgroup));
    const Runtime pinfold_grouped = TRY(runtime("pinfold", programs.pinfold, {}));
    Runtime crun_grouped = TRY(runtime("crun", programs.crun, {}));
    crun_grouped.pretend_memlock = !at.workplace.can_raise_memlock();
    const Runtime runc = TRY(runtime("runc", programs.runc, {}));
    Runtime by_user = pinfold;
    by_user.root = TRY(directory_of(at, "state-user", kNormalUser));
    by_user.globals = {};

    const std::string rootfs = quick.directory + "/rootfs";
    const Arguments python = {programs.python, "-c", "print(6 * 7)"};
    const Scenario run = run_scenario(pinfold, "run", quick.directory);
    const Scenario crun_run = run_scenario(crun, "run", quick.directory);
    const Scenario floor_run = plain("floor: run", programs.floor, {rootfs, "/bin/true"});
    std::vector<Scenario> all = {
        run,
        crun_run,
        run_scenario(new_crun, "run", quick.directory),
        floor_run,
        bwrap_bundle(programs.bwrap, rootfs),
        run_scenario(pinfold_grouped, "run with a cgroup", quick.directory),
        run_scenario(crun_grouped, "run with a cgroup", quick.directory),
        run_scenario(runc, "run with a cgroup", quick.directory),
        floor_with_cgroup(at, rootfs),
        life_cycle(pinfold, quick.directory),
        life_cycle(crun, quick.directory),
        exec_scenario(pinfold, waits.directory),
        exec_scenario(crun, waits.directory),
        plain("pinfold: --version", programs.pinfold, {"--version"}),
        plain("hello", programs.hello, Arguments()),
        run_scenario(pinfold, "run with Docker's seccomp profile", docker.directory),
        sandbox(by_user, "pinfold: sandbox by a normal user", {"true"}, kNormalUser),
        bwrap_sandbox(programs.bwrap, "bwrap: sandbox by a normal user", {"true"}, kNormalUser),
        sandbox(pinfold_grouped, "pinfold: sandbox by root", {"true"}, 0),
        bwrap_sandbox(programs.bwrap, "bwrap: sandbox by root", {"true"}, 0),
        sandbox(by_user, "pinfold: sandbox with python", python, kNormalUser),
        bwrap_sandbox(programs.bwrap, "bwrap: sandbox with python", python, kNormalUser),
        at_once_scenario(run),
        at_once_scenario(crun_run),
        at_once_scenario(floor_run),
        waiting_scenario(pinfold, quick.directory),
        waiting_scenario(crun, quick.directory),
        list_scenario(pinfold, quick.directory),
        list_scenario(crun, quick.directory),
        smallest_memory_scenario(pinfold_grouped, limited),
        smallest_memory_scenario(crun_grouped, limited),
        many_sandboxes(pinfold_grouped, 300, at.slow),
        many_sandboxes(pinfold_grouped, 1000, at.slow),
    };
    for (Scenario& scenario : all) {
        if (programs.python.empty() && scenario.name.ends_with("python")) scenario.skip_reason = "no python";
    }
    return all;
}

}  // namespace pinfold::bench
