// A session of shell commands in a sandbox: each goes on in the working directory and with the environment that the
// last one of the same name has left. There is no process that would have to live in between.
#pragma once

#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

// A name that can be a part of a file's.
Result<void> check_session(const std::string& name);

struct SessionCall {
    std::string name;
    std::vector<std::string> words;
    std::string cwd{};               // where it begins, whatever the session has left; empty: where that was left
    std::vector<std::string> env{};  // variables, of which the same is true; they are the process's as well
};

// The program that has a shell evaluate the words, joined by blanks, in that session.
std::vector<std::string> session_command(const SessionCall& call);

}  // namespace pinfold
