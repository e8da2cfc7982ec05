// A network of its own for a sandbox, by pasta(1): a process of the caller's that translates connections.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <utility>

#include "pinfold/result.hpp"
#include "process/spawn.hpp"

namespace pinfold {

// Where the sandbox's questions for names can be sent to, whatever this machine's own servers are: pasta passes them
// on.
inline constexpr const char* kPastaNameServer = "169.254.1.1";
// That is what a sandbox asks where all servers of a resolv.conf are this machine's loopback, or there are none.
bool is_for_this_machine_only(std::string_view resolv_conf);
bool is_on_loopback(std::string_view server_line);

// pasta and a process that watches over it, which ends both as soon as the sandbox's init has ended, however that
// comes. So nothing is left of them if we are killed, and a sandbox that stays needs nobody else.
class Pasta {
public:
    // Returns when the network is there.
    static Result<Pasta> start(const Child& sandbox_init);

    Pasta(Pasta&& other) noexcept : watcher_(std::exchange(other.watcher_, -1)) {}
    Pasta& operator=(Pasta&&) = delete;
    Pasta(const Pasta&) = delete;
    Pasta& operator=(const Pasta&) = delete;
    ~Pasta();  // waits for their end: the sandbox init must have been killed before

    void release() noexcept { watcher_ = -1; }

private:
    explicit Pasta(pid_t watcher) : watcher_(watcher) {}

    pid_t watcher_;
};

}  // namespace pinfold
