// Answers go to standard output, whole, or there is an error.
#include <cstdio>

#include "cli/verbs.hpp"

namespace pinfold {

Result<void> print(const std::string& text) {
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
        return errno_error("write to standard output");
    return {};
}

}  // namespace pinfold
