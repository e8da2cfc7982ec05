// How errors are worded.
#include "pinfold/result.hpp"

#include <cerrno>
#include <cstring>

#include "base/strings.hpp"

namespace pinfold {

Error Error::within(std::string_view clause) && {
    message = concat(clause, ": ", message);
    return std::move(*this);
}

Error Error::with_hint(std::string text) && {
    hint = std::move(text);
    return std::move(*this);
}

// Engines search a failed start's message for "no such file or directory", "permission denied" and "operation not
// permitted" to tell a missing or unusable executable from other failures. So only the exec step may use those
// words; everything else is worded here.
std::string errno_words(int code) {
    const char* name = strerrorname_np(code);
    const std::string suffix = name ? concat(" (", name, ")") : concat(" (errno ", code, ")");
    switch (code) {
        case ENOENT: return "does not exist" + suffix;
        case EACCES: return "access denied" + suffix;
        case EPERM: return "not allowed" + suffix;
        default: break;
    }
    const char* words = strerrordesc_np(code);
    std::string text = words ? words : "unknown error";
    // "Invalid argument" reads as part of a sentence once it starts in lower case; "RPC ..." stays as it is.
    if (text.size() > 1 && text[1] >= 'a' && text[1] <= 'z') text[0] = static_cast<char>(text[0] | 0x20);
    return text + suffix;
}

Error errno_error(std::string_view what) { return errno_error(errno, what); }

Error errno_error(int code, std::string_view what) { return Error{code, concat(what, ": ", errno_words(code)), {}}; }

Error plain_error(std::string message) { return Error{0, std::move(message), {}}; }

}  // namespace pinfold
