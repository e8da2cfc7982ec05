// What a command of pinfold's takes of memory.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "harness.hpp"

namespace pinfold::integration {

struct Measured {
    int status = 0;
    size_t peak = 0;  // bytes of memory that it, or a child of its that it has awaited, had at once
    std::string err;
};

inline Measured measure(const Bundle& bundle, const std::vector<std::string>& words) {
    const std::vector<std::string> line = bundle.verb(words);
    const fs::path log = bundle.host() / "stderr";
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        ::dup2(out, STDOUT_FILENO);
        ::dup2(out, STDERR_FILENO);
        std::vector<char*> argv;
        for (const std::string& word : line) argv.push_back(const_cast<char*>(word.c_str()));
        argv.push_back(nullptr);
        ::execvp(argv[0], argv.data());
        ::_exit(127);
    }
    int status = 0;
    rusage usage{};
    REQUIRE(::wait4(pid, &status, 0, &usage) == pid);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), size_t(usage.ru_maxrss) << 10,
            read_text(log)};
}

}  // namespace pinfold::integration
