// What around pinfold can forbid a start, and what helps.
#include "kernel/surroundings.hpp"

#include <linux/capability.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "installed.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/namespaces.hpp"

namespace pinfold {

namespace {

using Engine = Surroundings::Engine;

// The first word of a file; empty where there is no such file.
std::string word_of(const std::string& path) {
    const Result<std::string> text = read_file(path);
    return text ? text->substr(0, text->find_first_of(" \n")) : std::string();
}

Engine find_engine(const std::string& root) {
    const auto exists = [&](const char* path) { return ::access((root + path).c_str(), F_OK) == 0; };
    if (exists("/run/secrets/kubernetes.io") || ::getenv("KUBERNETES_SERVICE_HOST") != nullptr)
        return Engine::kubernetes;
    if (exists("/run/.containerenv")) return Engine::podman;
    return exists("/.dockerenv") ? Engine::docker : Engine::none;
}

bool find_filter(const std::string& root) {
    const Result<std::string> status = read_file(root + "/proc/self/status");
    return status && status->find("\nSeccomp:\t2") != std::string::npos;
}

// The fifth word of a line of mountinfo is where something is mounted.
std::vector<std::string> find_masks(const std::string& root) {
    std::vector<std::string> masks;
    const Result<std::string> mounts = read_file(root + "/proc/self/mountinfo");
    if (!mounts) return masks;
    for (const std::string_view line : split(*mounts, '\n')) {
        const std::vector<std::string_view> words = split(line, ' ');
        if (words.size() > 4 && words[4].starts_with("/proc/")) masks.emplace_back(words[4]);
    }
    return masks;
}

// "docker-default (enforce)", "unconfined", "pinfold (unconfined)"; nothing where there is no AppArmor.
void look_at_apparmor(const std::string& root, Surroundings& around) {
    Result<std::string> label = read_file(root + "/proc/self/attr/apparmor/current");
    if (!label) label = read_file(root + "/proc/self/attr/current");
    around.apparmor_confines = label && label->find("(enforce)") != std::string::npos;
    around.apparmor_restricts = word_of(root + "/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" &&
                                (!label || label->starts_with("unconfined"));
}

bool is_privileged_here() {
    const Result<bool> initial = in_initial_user_namespace();
    const Result<uint64_t> own = own_permitted_capabilities();
    return initial && *initial && own && (*own >> CAP_SYS_ADMIN & 1) != 0;
}

std::string kernel_release() {
    utsname names{};
    return ::uname(&names) == 0 ? names.release : "";
}

// gVisor says of itself that it is Linux 4.4.0 of a day on which there was none.
bool find_gvisor(const std::string& root) {
    const Result<std::string> version = read_file(root + "/proc/version");
    return version && version->find(" 4.4.0 ") != std::string::npos &&
           version->find("Sun Jan 10 15:06:54 PST 2016") != std::string::npos;
}

struct Remedy {
    const char* filter;
    const char* masks;
    const char* profile;
};

// What to type, by the engine of the container around.
constexpr Remedy kRemedies[] = {
    {"start it without that filter: it is that of a container's engine, or of a unit (RestrictNamespaces=)",
     "unmount what lies there, or call pinfold where /proc has no masks", "run it without that profile"},
    {"docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined ...",
     "docker run --security-opt systempaths=unconfined ...", "docker run --security-opt apparmor=unconfined ..."},
    {"podman run --security-opt seccomp=unconfined --security-opt unmask=ALL ...",
     "podman run --security-opt unmask=ALL ...", "podman run --security-opt apparmor=unconfined ..."},
    {"in the pod's securityContext: seccompProfile: {type: Unconfined}, procMount: Unmasked",
     "in the container's securityContext: procMount: Unmasked",
     "in the pod's securityContext: appArmorProfile: {type: Unconfined}"},
};

const Remedy& remedy_of(const Surroundings& around) { return kRemedies[size_t(around.engine)]; }

struct Explanation {
    std::string cause;
    std::string hint;
};

bool is_of_clone(const Error& error) { return error.message.starts_with("clone"); }
bool is_refusal(const Error& error) { return error.code == EPERM || error.code == EACCES; }

std::optional<Explanation> explain_apparmor(const Error& error, const Surroundings& around) {
    if (!is_refusal(error) || around.is_privileged) return std::nullopt;
    if (around.apparmor_restricts) {
        return Explanation{
            "AppArmor lets no program without a profile use user namespaces "
            "(kernel.apparmor_restrict_unprivileged_userns is 1)",
            "give it the profile that comes with it: sudo install -m 644 " PINFOLD_EXAMPLES
            "/apparmor /etc/apparmor.d/pinfold && sudo apparmor_parser --replace /etc/apparmor.d/pinfold"};
    }
    // Of a mount, AppArmor's answer differs from that of the kernel's own checks.
    if (around.apparmor_confines && error.code == EACCES)
        return Explanation{"an AppArmor profile around pinfold may forbid it", remedy_of(around).profile};
    return std::nullopt;
}

std::optional<Explanation> explain_limits(const Error& error, const Surroundings& around) {
    if (!is_of_clone(error)) return std::nullopt;
    if (error.code == ENOSPC && around.user_namespaces == 0) {
        return Explanation{"no user namespace may be made here: /proc/sys/user/max_user_namespaces is 0",
                           "as root: sysctl user.max_user_namespaces=15000"};
    }
    if (error.code == EPERM && around.clone_is_switched_off && !around.is_privileged) {
        return Explanation{"user namespaces are root's alone here: kernel.unprivileged_userns_clone is 0",
                           "as root: sysctl kernel.unprivileged_userns_clone=1"};
    }
    return std::nullopt;
}

std::optional<Explanation> explain_filter(const Error& error, const Surroundings& around) {
    const bool is_answer = error.code == EPERM || (error.code == ENOSYS && is_of_clone(error));
    if (!around.is_filtered || !is_answer) return std::nullopt;
    const char* const whose = around.engine == Engine::none ? "a seccomp filter around pinfold"
                                                            : "the seccomp filter of the container around";
    return Explanation{concat(whose, is_of_clone(error) ? " forbids new namespaces" : " may forbid it"),
                       remedy_of(around).filter};
}

// The kernel hides nothing that is hidden outside: mount_namespaces(7), "Mount too revealing".
std::optional<Explanation> explain_masks(const Error& error, const Surroundings& around) {
    const bool is_proc = error.message.find(" /proc: ") != std::string::npos;
    if (error.code != EPERM || !is_proc || around.masks.empty()) return std::nullopt;
    // A filter that lets it come so far may well forbid what follows.
    const Remedy& remedy = remedy_of(around);
    return Explanation{concat("parts of /proc are masked around pinfold (", around.masks[0], ")"),
                       around.is_filtered ? remedy.filter : remedy.masks};
}

std::optional<Explanation> explain_kernel(const Error& error, const Surroundings& around) {
    if (around.is_gvisor && (error.code == ENOSYS || error.code == EPERM)) {
        return Explanation{"this is gVisor, not Linux",
                           "call pinfold outside of it; sandbox --runtime runsc runs a job in gVisor"};
    }
    if (error.code != ENOSYS || !is_of_clone(error)) return std::nullopt;
    return Explanation{concat("this kernel, ", around.kernel, ", does not have it"), "Linux 5.12 or newer is needed"};
}

}  // namespace

Surroundings look_around(const std::string& root) {
    Surroundings around;
    around.engine = find_engine(root);
    around.is_privileged = is_privileged_here();
    around.is_filtered = find_filter(root);
    around.is_gvisor = find_gvisor(root);
    look_at_apparmor(root, around);
    around.clone_is_switched_off = word_of(root + "/proc/sys/kernel/unprivileged_userns_clone") == "0";
    around.user_namespaces = parse_number<uint64_t>(word_of(root + "/proc/sys/user/max_user_namespaces"));
    around.masks = find_masks(root);
    around.kernel = kernel_release();
    return around;
}

Error explain_start(Error error, const Surroundings& around) {
    for (const auto& explain : {explain_apparmor, explain_limits, explain_masks, explain_filter, explain_kernel}) {
        std::optional<Explanation> found = explain(error, around);
        if (!found) continue;
        error.message += concat(": ", found->cause);
        error.hint = std::move(found->hint);
        break;
    }
    return error;
}

}  // namespace pinfold
