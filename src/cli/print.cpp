// Answers go to standard output, whole, or there is an error.
#include <cstdio>

#include "cli/verbs.hpp"

namespace pinfold {

Result<void> print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        return errno_error("write to standard output");
    return {};
}

}  // namespace pinfold
