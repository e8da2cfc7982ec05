// Where the benchmark works: a mount namespace and a tmpfs of its own, so that nothing outlives it, and one view of
// the cgroups that every variant shares.
#pragma once

#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold::bench {

class Workplace {
public:
    // Puts this process into its own mount namespace. Needs root.
    static Result<Workplace> set_up();
    Workplace(Workplace&& other) noexcept;
    Workplace& operator=(Workplace&&) = delete;
    ~Workplace();

    const std::string& directory() const { return directory_; }
    // A file as the linker left it runs slower than its copy: what is measured is copied first. Empty for no program.
    Result<std::string> copy(const std::string& program, const std::string& name) const;
    // From now on the machine's own cgroups, whatever they are: for what needs controllers.
    void leave_cgroup_view();
    bool has_cgroup2() const { return has_cgroup2_; }
    // crun's device program needs it, see Command::pretend_memlock.
    bool can_raise_memlock() const { return can_raise_memlock_; }
    // What a reader of the figures must know about the machine.
    const std::vector<std::string>& notes() const { return notes_; }

private:
    Workplace() = default;
    Result<void> choose_cgroup_view();
    void check_memlock();

    std::string directory_;
    bool has_cgroup2_ = false;
    bool has_own_view_ = false;
    bool can_raise_memlock_ = true;
    std::vector<std::string> notes_;
};

}  // namespace pinfold::bench
