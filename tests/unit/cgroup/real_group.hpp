// A place in this host's real cgroup v2 hierarchy for one test, gone at the end of the scope.
#pragma once

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold::testing {

class RealGroup {
public:
    RealGroup() : host_(find_cgroup_host().value()), path_(concat("/pinfold-test-", ::getpid())) {}
    RealGroup(const RealGroup&) = delete;
    RealGroup& operator=(const RealGroup&) = delete;
    ~RealGroup() {
        if (usable()) (void)remove_cgroup(at()).has_value();
    }

    bool usable() const { return why_not().empty(); }
    std::string why_not() const {
        if (host_.mount.empty()) return "cgroup v2 is not mounted";
        return host_.writable ? "" : host_.mount + " is not writable";
    }
    // Whether the controller is there for groups below the top, as it is: tests do not change the host's top.
    bool has_controller(const std::string& name) const {
        const auto list = read_file(host_.mount + "/cgroup.subtree_control");
        return list && has_word(*list, name);
    }

    const CgroupHost& host() const { return host_; }
    const std::string& path() const { return path_; }
    CgroupPath at(const std::string& below = "") const { return {host_.mount, path_ + below, {}, {}}; }
    std::string file(const std::string& name) const { return concat(host_.mount, path_, '/', name); }

    bool make(const std::string& below = "") const {
        return ::mkdir(concat(host_.mount, path_, below).c_str(), 0755) == 0;
    }
    void clear() const {
        ::rmdir((host_.mount + path_).c_str());
        (void)make();
    }
    UniqueFd open(const std::string& below = "") const {
        return UniqueFd(::open(concat(host_.mount, path_, below).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
    bool exists(const std::string& below = "") const {
        return ::access(concat(host_.mount, path_, below).c_str(), F_OK) == 0;
    }

    // A plan for a group below the place, with nothing asked for.
    CgroupPlan plan(const std::string& below = "/web") const {
        CgroupPlan plan;
        plan.place = at(below);
        plan.hybrid = host_.hybrid;
        return plan;
    }

private:
    CgroupHost host_;
    std::string path_;
};

// A child that is born in the group and ends with the value of body(), or -1.
template <class Body>
pid_t spawn_in(int group, Body body) {
    clone_args arguments{};
    arguments.flags = CLONE_INTO_CGROUP;
    arguments.exit_signal = SIGCHLD;
    arguments.cgroup = uint64_t(group);
    const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
    if (pid == 0) ::_exit(body());
    return pid;
}

// A child that stays in the group until it is killed.
inline pid_t settle_in(int group) {
    return spawn_in(group, [] {
        for (;;) ::pause();
        return 0;
    });
}

inline int wait_status(pid_t pid) {
    int status = -1;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

// Its exit code, or minus the number of the signal that ended it.
inline int outcome(pid_t pid) {
    const int status = wait_status(pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace pinfold::testing
