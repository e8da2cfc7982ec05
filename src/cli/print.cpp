// Answers go to standard output, whole, or there is an error.
#include <cstdio>

#include "base/strings.hpp"
#include "cli/verbs.hpp"

namespace pinfold {

// Names and words from inside a container may be in it.
Result<void> print(std::string_view text) {
    const std::string shown = printable(text, kLineEnds);
    if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size() || std::fflush(stdout) != 0)
        return errno_error("write to standard output");
    return {};
}

}  // namespace pinfold
