// What a caller names, against the policies.
#include "policy/gate.hpp"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "policy/check_request.hpp"
#include "policy/verbs.hpp"

namespace pinfold {

namespace {

using Paths = std::vector<std::string>;

constexpr std::string_view kByNumber = "/proc/self/fd/";

std::string_view value_of(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// sudo tells which program it was asked for. Where that is another one, an engine as a rule, our caller is that
// program. By its name as well: we may run from a protected copy of our file.
bool sudo_started_another() {
    const std::string_view command = value_of("SUDO_COMMAND");
    const std::string program(command.substr(0, command.find(' ')));
    struct stat asked {};
    struct stat own {};
    return !program.substr(program.rfind('/') + 1).starts_with("pinfold") && ::stat(program.c_str(), &asked) == 0 &&
           ::stat("/proc/self/exe", &own) == 0 && (asked.st_ino != own.st_ino || asked.st_dev != own.st_dev);
}

Error refusal(const std::string& reason) { return Error{kPolicyRefusal, concat("policy: ", reason), {}}; }

// What a caller takes along through sudo(8), and by which our own work fails where the caller chooses: at the event
// that follows a deed, by no room, no descriptor, no memory or no time.
struct LeastLimit {
    __rlimit_resource resource;
    const char* name;
    rlim_t least;
};

constexpr LeastLimit kLeastLimits[] = {
    {RLIMIT_FSIZE, "RLIMIT_FSIZE", RLIM_INFINITY}, {RLIMIT_CPU, "RLIMIT_CPU", RLIM_INFINITY},
    {RLIMIT_AS, "RLIMIT_AS", RLIM_INFINITY},       {RLIMIT_DATA, "RLIMIT_DATA", RLIM_INFINITY},
    {RLIMIT_NOFILE, "RLIMIT_NOFILE", 1024},        {RLIMIT_STACK, "RLIMIT_STACK", 1 << 20},
};

Result<void> raise_callers_limits() {
    for (const LeastLimit& one : kLeastLimits) {
        rlimit limit{};
        if (::getrlimit(one.resource, &limit) != 0) return errno_error(one.name);
        if (limit.rlim_cur >= one.least) continue;
        const rlimit raised{one.least, std::max(limit.rlim_max, one.least)};
        if (::setrlimit(one.resource, &raised) == 0) continue;
        const std::string least = one.least == RLIM_INFINITY ? "unlimited" : std::to_string(one.least);
        return errno_error(concat("raise the caller's ", one.name, " from ", limit.rlim_cur, " to ", least))
            .with_hint("call sudo without a limit of your own (ulimit): what is done has to be logged");
    }
    return {};
}

// Without a list root may name every file. Who has its rights from sudo(8) has asked for them by those very names.
void allow_what_is_listed(MountPolicy& mounts) {
    for (auto* paths : {&mounts.allowed_read_paths, &mounts.allowed_write_paths}) *paths = paths->value_or(Paths());
}

std::string_view without_slashes(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    return path;
}

}  // namespace

bool has_borrowed_rights() {
    if (::getauxval(AT_SECURE) != 0 || ::getuid() != ::geteuid()) return true;
    const auto names_another = [](const char* name, std::string_view root) {
        return !value_of(name).empty() && value_of(name) != root;
    };
    if (names_another("PKEXEC_UID", "0") || names_another("DOAS_USER", "root")) return true;
    return names_another("SUDO_UID", "0") && !sudo_started_another();
}

std::optional<uid_t> sudo_caller() {
    if (::getuid() != 0 || ::getauxval(AT_SECURE) != 0 || sudo_started_another()) return std::nullopt;
    return parse_number<uid_t>(value_of("SUDO_UID"));
}

Result<Gate> Gate::open(const std::string& verb) {
    Gate gate(verb, has_borrowed_rights());
    gate.policies_ = TRY(load_policies(""));
    if (!gate.binds_caller()) return gate;
    TRY(raise_callers_limits());
    allow_what_is_listed(gate.policies_.back().mounts);
    return gate;
}

Result<void> Gate::add(const std::string& policy) {
    if (policy.empty()) return {};
    // Its mistakes are told with its words: whoever may not read it must not get that far.
    std::string file = policy;
    if (governs()) TRY_IN("--policy", admit_here(PathUse::read, file));
    Policies added;
    TRY(add_policy(added, file, policy));
    std::string& log = added.back().audit;
    if (binds_caller() && !log.empty()) TRY_IN("--policy: audit", admit_here(PathUse::entry, log));
    policies_.push_back(std::move(added.back()));
    return {};
}

bool Gate::governs() const { return has_policy() && (borrowed_ || !is_engine_verb(verb_)); }

Result<void> Gate::check_verb() const {
    for (const Policy& policy : std::span(policies_).subspan(1)) {  // the built-in one has nothing to say of verbs
        const bool allowed = policy.verbs ? std::ranges::find(*policy.verbs, verb_) != policy.verbs->end()
                                          : !borrowed_ || is_safe_verb(verb_);
        if (allowed) continue;
        const std::string who = policy.verbs ? "" : " to who comes by sudo, where verbs does not list it";
        return refusal(concat("verbs: ", quoted(verb_), " is not allowed", who, " (", policy.mounts.origin, ")"))
            .with_hint("pinfold-policy(5) tells who may call what");
    }
    return {};
}

Result<void> Gate::admit(const std::string& option, PathUse use, std::string& path) {
    if (path.empty() || path == "-" || !governs()) return {};
    TRY_IN(option, admit_here(use, path));
    return {};
}

Result<UniqueFd> Gate::open_to_read(const std::string& path) const {
    if (path == "-" || !governs()) return UniqueFd();
    return open_allowed(policies_, path, Access::read);
}

Result<void> Gate::admit_here(PathUse use, std::string& path) {
    switch (use) {
        case PathUse::read: hold(TRY(open_allowed(policies_, path, Access::read)), "", path); return {};
        case PathUse::source: return admit_entry(path, Access::read);
        case PathUse::entry: return admit_entry(path, Access::write);
        case PathUse::append: return admit_append(path);
        case PathUse::socket: return refusal("a socket of the caller's is not connected to");
        case PathUse::profile: return admit_profile(path);
        case PathUse::state_root: return admit_state_root(path);
    }
    return {};
}

Result<void> Gate::admit_entry(std::string& path, Access access) {
    const std::string plain(without_slashes(path));
    const std::string name = plain.substr(plain.rfind('/') + 1);
    if (name.empty() || name == "." || name == "..") {
        hold(TRY(open_allowed(policies_, plain, access)), "/.", path);
    } else {
        hold(TRY(open_parent_allowed(policies_, plain, access)), concat('/', name), path);
    }
    return {};
}

// Opened here, where no link is followed: whoever owns the directory could put one in the place of the file.
Result<void> Gate::admit_append(std::string& path) {
    std::string entry = path;
    TRY(admit_entry(entry, Access::write));
    UniqueFd file = TRY(open_at(AT_FDCWD, entry, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0644));
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return errno_error("stat");
    if (!S_ISREG(info.st_mode) || info.st_nlink > 1) return refusal("it is no file, or one with several names");
    hold(std::move(file), "", path);
    return {};
}

Result<void> Gate::admit_profile(std::string& path) {
    UniqueFd file = TRY(open_profile_allowed(policies_, path));
    if (file) hold(std::move(file), "", path);
    return {};
}

// Of the states of others a caller could make anything. (Whoever counts sandboxes looks at the directory itself.)
Result<void> Gate::admit_state_root(const std::string& path) const {
    if (!binds_caller()) return {};
    return refusal(concat("only the default state directory can be used, not ", path)).with_hint("leave out --root");
}

void Gate::hold(UniqueFd fd, std::string_view rest, std::string& path) {
    std::string name = concat(kByNumber, fd.get(), rest);
    held_.push_back({std::move(fd), name, path});
    path = std::move(name);
}

std::string Gate::in_callers_words(std::string text) const {
    for (const Held& held : held_) {
        for (size_t at = 0; (at = text.find(held.name, at)) != std::string::npos;) {
            const size_t end = at + held.name.size();
            const bool is_longer = end < text.size() && text[end] >= '0' && text[end] <= '9';
            if (!is_longer) text.replace(at, held.name.size(), held.callers);
            at += is_longer ? held.name.size() : held.callers.size();
        }
    }
    return text;
}

}  // namespace pinfold
