// The end of an audit log, read from the end: logs grow.
#pragma once

#include <string>

#include "audit/line.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct Tail {
    ChainEnd end;       // of the last whole line
    std::string rest;   // what follows it and is no such line
    bool open = false;  // whether the newline is missing at the very end
};

Result<Tail> read_tail(int fd, const std::string& name);

}  // namespace pinfold
