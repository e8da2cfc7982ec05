// Container ids.
#include "state/container_id.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxLength = 255;  // of a file name

bool is_harmless(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '+' ||
           c == '-' || c == '.';
}

}  // namespace

Result<void> check_container_id(const std::string& id) {
    const bool usable = !id.empty() && id.size() <= kMaxLength && id != "." && id != ".." &&
                        std::all_of(id.begin(), id.end(), is_harmless);
    if (usable) return {};
    return plain_error(
        concat("container id ", quoted(id), ": allowed are 1 to 255 letters, digits and the characters _ + - ."));
}

}  // namespace pinfold
