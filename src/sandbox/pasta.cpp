// A network of its own for a sandbox.
#include "sandbox/pasta.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/strings.hpp"

namespace pinfold {

// No port is passed in either direction, and the gateway's address does not stand for the host's loopback: otherwise
// the sandbox could reach what only the host itself is meant to.
Result<void> start_pasta(pid_t pid) {
    const std::string process = std::to_string(pid);
    const std::vector<std::string> words = {"pasta", "--config-net", "--quiet", "--no-map-gw", "-t",   "none", "-u",
                                            "none",  "-T",           "none",    "-U",          "none", process};
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t pasta = 0;
    const int failed = ::posix_spawnp(&pasta, "pasta", nullptr, nullptr, arguments.data(), environ);
    if (failed != 0) {
        return errno_error(failed, "--network pasta: start pasta")
            .with_hint("install the package passt, or say --network host or none");
    }
    int status = 0;
    while (::waitpid(pasta, &status, 0) < 0 && errno == EINTR) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    return plain_error("--network pasta: pasta could not set up the network; its words are above");
}

}  // namespace pinfold
