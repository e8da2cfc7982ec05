// Many sandboxes at the same time.
#include "at_once.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "base/strings.hpp"

namespace pinfold::bench {

namespace {

Result<pid_t> start(const std::string& pinfold, const std::string& state_root, int number) {
    std::vector<std::string> words = {pinfold, "--root", state_root, "sandbox", "--name", concat("bench-", number),
                                      "--",    "true"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t pid = -1;
    errno = ::posix_spawn(&pid, pinfold.c_str(), nullptr, nullptr, argv.data(), environ);
    if (errno != 0) return errno_error(concat("start ", pinfold));
    return pid;
}

}  // namespace

Result<std::string> run_at_once(const std::string& pinfold, int count) {
    char state_root[] = "/dev/shm/pinfold-bench-XXXXXX";
    if (::mkdtemp(state_root) == nullptr) return errno_error(concat("make ", state_root));
    const auto begin = std::chrono::steady_clock::now();
    std::vector<pid_t> running;
    int failed = 0;
    for (int i = 0; i < count; ++i) {
        const Result<pid_t> pid = start(pinfold, state_root, i);
        if (pid) running.push_back(*pid);
        else ++failed;
    }
    for (const pid_t pid : running) {
        int status = 0;
        if (::waitpid(pid, &status, 0) != pid || status != 0) ++failed;
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    std::error_code ignored;
    std::filesystem::remove_all(state_root, ignored);
    return concat(count, " sandboxes at once: ", int(took.count()), " ms, ", failed, " failed\n");
}

}  // namespace pinfold::bench
