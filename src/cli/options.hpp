// What the command line said, as plain data.
#pragma once

#include <string>
#include <variant>

#include "base/log.hpp"
#include "cgroup/plan.hpp"

namespace pinfold {

struct GlobalOptions {
    std::string root;  // of the state directories
    LogOptions log;
    CgroupManager cgroup_manager = CgroupManager::cgroupfs;
};

struct RunOptions {
    std::string id;
    std::string bundle = ".";
    std::string config;  // empty: BUNDLE/config.json
    std::string pid_file;
    std::string console_socket;
    unsigned preserve_fds = 0;
    bool no_pivot = false;
    bool no_new_keyring = false;
    bool detach = false;
    bool keep = false;
    bool dry_run = false;
};

struct StateOptions {
    std::string id;
};

struct DeleteOptions {
    std::string id;
    bool force = false;
};

struct CommandLine {
    GlobalOptions global;
    std::variant<RunOptions, StateOptions, DeleteOptions> verb;
    char** argv = nullptr;
};

}  // namespace pinfold
