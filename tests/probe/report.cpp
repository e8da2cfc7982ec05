// `probe report`: one JSON document with all that a process can see of its sandbox.
#include "report.hpp"

#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "commands.hpp"

namespace probe {

namespace {

std::string working_directory() {
    std::array<char, 4096> buffer{};
    return ::getcwd(buffer.data(), buffer.size()) != nullptr ? buffer.data() : "";
}

std::string current_umask() {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return octal(mask);
}

}  // namespace

Object report(const Arguments& arguments) {
    List argv;
    argv.add(program_invocation_name).add("report");
    for (const std::string& argument : arguments) argv.add(argument);
    List env;
    for (char** entry = environ; *entry != nullptr; ++entry) env.add(*entry);

    Object out;
    out.add("ok", true).add("argv", argv).add("env", env).add("cwd", working_directory()).add("umask", current_umask());
    out.add("process", process_ids()).add("credentials", credentials()).add("namespaces", namespaces());
    out.add("hosts", hosts()).add("capabilities", capabilities()).add("seccomp", seccomp()).add("rlimits", rlimits());
    out.add("no_new_privs", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0))
        .add("dumpable", ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
    out.add("personality", ::personality(0xffffffff)).add("keyring", keyring()).add("scheduling", scheduling());
    out.add("fds", open_files()).add("mounts", mounts()).add("devices", devices()).add("terminals", terminals());
    out.add("clocks", clocks()).add("interfaces", interfaces()).add("proc", proc_files());
    return out;
}

}  // namespace probe
