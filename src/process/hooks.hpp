// Hooks: programs that the configuration names for certain moments of a container's life.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "state/store.hpp"

namespace pinfold {

// What a hook is given: the container's state at that moment.
std::string hook_state(const ContainerRecord& record, Status status, pid_t pid = 0);

// Runs them one after the other, each with the container's state on its standard input, in the namespaces of the
// caller, until one fails: exit code not 0, or longer than its timeout. `kind` is the property's name in the
// configuration. A signal that asks us to end, if signal_fd is one to read such from, ends the hook as well.
// For those that could take over rights from the process beside them there is `forbids_tracing`: they do not get
// CAP_SYS_PTRACE, nor can they.
Result<void> run_hooks(std::string_view kind, const std::vector<Hook>& hooks, const std::string& state,
                       int signal_fd = -1, bool forbids_tracing = false);

// For the hooks after a container's end: a failure is a warning, and the next one is run all the same.
void run_poststop_hooks(const std::vector<Hook>& hooks, const std::string& state, int signal_fd = -1);

// The hooks for the end of a container, once there is one to end: they run when all else of it is gone.
class PoststopHooks {
public:
    PoststopHooks(const std::vector<Hook>& hooks, const ContainerRecord& record) : hooks_(hooks), record_(record) {}
    PoststopHooks(const PoststopHooks&) = delete;
    PoststopHooks& operator=(const PoststopHooks&) = delete;
    ~PoststopHooks() {
        if (armed_ && !hooks_.empty()) run_poststop_hooks(hooks_, hook_state(record_, Status::stopped));
    }

    void arm() noexcept { armed_ = true; }
    void disarm() noexcept { armed_ = false; }

private:
    const std::vector<Hook>& hooks_;
    const ContainerRecord& record_;
    bool armed_ = false;
};

}  // namespace pinfold
