// A session of shell commands in a sandbox.
#include "sandbox/session.hpp"

#include "base/strings.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

// The file is the payload's own, in its own /tmp: it can do nothing to it that it could not do to its next command. It
// holds the variables, the directory as one of them. It is written beside, under a name of this shell's own, and then
// renamed: a command that is killed leaves the session as it was, and of several at once the last one wins. It is kept
// after the words, and again on exit, since words may exit, or have an EXIT trap of their own. None of it depends on
// what words do to PATH, IFS or the umask. Arguments: the directory, where the session has no say in that, the words,
// and the names of variables in which it has none either. Their values are in the environment, where others do not see
// them, as they do a command line.
constexpr const char* kScript = R"sh(__pinfold_keep() {
    unset -f command pwd echo umask
    [ -z "$__pinfold_kept" ] || return 0
    __pinfold_kept=$(command pwd -P 2> /dev/null; echo .)
    [ . -ef "$PWD" ] || [ "${__pinfold_kept#/}" = "$__pinfold_kept" ] || PWD=${__pinfold_kept%??}
    export PWD && [ ! -d <file> ] && (umask 077 && export -p > "<file>.$$") && command -p mv -f -- "<file>.$$" <file> && return 0
    command -p rm -f -- "<file>.$$"
    echo "pinfold: session <name>: what these words have left, directory and environment, could not be kept" >&2
    return 1
}
__pinfold_cwd=$1
__pinfold_words=$2
shift 2
for __pinfold_name; do eval "__pinfold_new_$__pinfold_name=\$$__pinfold_name"; done
if [ -f <file> ]; then
    . <file>
    if [ -n "$__pinfold_cwd" ]; then command cd -P .
    elif ! command cd -- "$PWD"; then
        echo "pinfold: session <name>: its directory is gone: name another one by --cwd" >&2
        exit 255
    fi
fi
__pinfold_kept=
for __pinfold_name; do
    eval "$__pinfold_name=\$__pinfold_new_$__pinfold_name; export $__pinfold_name; unset __pinfold_new_$__pinfold_name"
done
trap 'set -- "$?"; trap - EXIT; __pinfold_keep || [ "$1" -ne 0 ] || set -- 255; exit "$1"' EXIT
eval "set --
$__pinfold_words"
set -- "$?"
__pinfold_keep || [ "$1" -ne 0 ] || set -- 255
exit "$1")sh";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
    for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

// What a shell can call a variable. Others it keeps as they came.
bool is_identifier(std::string_view name) {
    constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return !name.empty() && name.find_first_not_of(kLetters) == name.npos && (name[0] < '0' || name[0] > '9');
}

}  // namespace

Result<void> check_session(const std::string& name) {
    const Result<void> checked = check_container_id(name);
    if (checked) return {};
    return plain_error(concat("--session ", quoted(name), ": expected a name of letters, digits and _+-."));
}

std::vector<std::string> session_command(const SessionCall& call) {
    std::string script = kScript;
    replace_all(script, "<file>", concat("/tmp/.pinfold-session-", call.name));
    replace_all(script, "<name>", call.name);
    std::vector<std::string> command = {"/bin/sh", "-c", std::move(script), call.name, call.cwd, join(call.words, " ")};
    for (const std::string& entry : call.env) {
        std::string name = entry.substr(0, entry.find('='));
        if (is_identifier(name)) command.push_back(std::move(name));
    }
    return command;
}

}  // namespace pinfold
