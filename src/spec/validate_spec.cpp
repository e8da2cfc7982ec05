// The rules for the top of config.json: version, root, mounts, names, hooks, annotations.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "pinfold/result.hpp"
#include "spec/rules.hpp"
#include "spec/validate.hpp"

namespace pinfold {

namespace {

constexpr size_t kLongestHostName = 64;  // the kernel's __NEW_UTS_LEN

bool is_version_number(std::string_view text) {
    const bool digits = std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return digits && !text.empty() && (text.size() == 1 || text[0] != '0');
}

// A pre-release or build suffix: words of letters, digits and '-', with dots between them.
bool is_version_suffix(std::string_view text) {
    const auto allowed = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    };
    const auto is_word = [&](std::string_view word) {
        return !word.empty() && std::all_of(word.begin(), word.end(), allowed);
    };
    const std::vector<std::string_view> words = split(text, '.');
    return std::all_of(words.begin(), words.end(), is_word);
}

// Semantic version 1.x.y. A newer minor version than ours may name properties that we do not know; those are to be
// ignored anyway.
bool is_supported_version(std::string_view text) {
    const size_t suffix = text.find_first_of("-+");
    const std::vector<std::string_view> numbers = split(text.substr(0, suffix), '.');
    if (numbers.size() != 3 || numbers[0] != "1") return false;
    if (!is_version_number(numbers[1]) || !is_version_number(numbers[2])) return false;
    if (suffix == text.npos) return true;
    const size_t build = text.find('+', suffix);
    if (build != text.npos && !is_version_suffix(text.substr(build + 1))) return false;
    return build == suffix || is_version_suffix(text.substr(suffix + 1, build - suffix - 1));
}

bool has_option(const Mount& mount, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        mount.options, [&](const std::string& option) { return std::ranges::find(words, option) != words.end(); });
}

// What could not be done for such a mount is not left undone.
void validate_mount_options(const Mount& mount, std::string_view at, const Linux& linux_, Problems& problems) {
    const bool is_bind = mount.type == "bind" || has_option(mount, {"bind", "rbind"});
    const bool has_maps = !mount.uid_mappings.empty() || !mount.gid_mappings.empty();
    const bool asks_for_maps = has_option(mount, {"idmap", "ridmap"});
    if ((has_maps || asks_for_maps) && (!is_bind || has_option(mount, {"remount"})))
        problems.add(member_path(at, has_maps ? "uidMappings" : "options"), "ids can be mapped for bind mounts only");
    else if (!has_maps && asks_for_maps && !find_namespace(linux_, NamespaceType::user))
        problems.add(member_path(at, "options"), "idmap needs uidMappings and gidMappings, or a user namespace");
    if (has_option(mount, {"tmpcopyup"}) && (is_bind || mount.type == "cgroup" || has_option(mount, {"remount"})))
        problems.add(member_path(at, "options"), "tmpcopyup needs a new file system, such as a tmpfs");
}

// "/", "//", "/.", "/a/..": what is mounted there would lie below the root that the container has.
bool is_root(std::string_view path) {
    size_t depth = 0;
    for (const std::string_view name : split(path, '/')) {
        if (name == "..") depth -= depth > 0 ? 1 : 0;
        else if (!name.empty() && name != ".") ++depth;
    }
    return depth == 0;
}

// A relative destination is deprecated, but to be taken as relative to "/".
void validate_mount(const Mount& mount, std::string_view at, const Linux& linux_, Problems& problems) {
    if (mount.destination.empty()) problems.add(member_path(at, "destination"), expected_but_found("", "a path"));
    else if (is_root(mount.destination) && !has_option(mount, {"remount"}))
        problems.add(member_path(at, "destination"), expected_but_found(mount.destination, "a path below the root"));
    const bool uids = !mount.uid_mappings.empty();
    const bool gids = !mount.gid_mappings.empty();
    if (uids != gids) {
        problems.add(member_path(at, uids ? "gidMappings" : "uidMappings"),
                     concat("missing, required: ranges, since ", uids ? "uidMappings" : "gidMappings", " has some"));
    }
    validate_mount_options(mount, at, linux_, problems);
    validate_id_mappings(member_path(at, "uidMappings"), mount.uid_mappings, problems);
    validate_id_mappings(member_path(at, "gidMappings"), mount.gid_mappings, problems);
}

void validate_host_name(std::string_view property, std::string_view name, const Linux& linux_, Problems& problems) {
    if (name.empty()) return;
    if (!find_namespace(linux_, NamespaceType::uts)) {
        problems.add(std::string(property), "needs a uts namespace: it would rename the host");
    } else if (name.size() > kLongestHostName) {
        problems.add(std::string(property), expected_but_found(name, concat("at most ", kLongestHostName, " bytes")));
    }
}

void validate_hooks(std::string_view at, const std::vector<Hook>& hooks, Problems& problems) {
    for (size_t i = 0; i < hooks.size(); ++i) {
        const std::string path = element_path(at, i);
        require_absolute(member_path(path, "path"), hooks[i].path, problems);
        if (hooks[i].timeout && *hooks[i].timeout <= 0) {
            problems.add(member_path(path, "timeout"), expected_but_found(*hooks[i].timeout, "seconds, more than 0"));
        }
    }
}

}  // namespace

void validate_spec(const Spec& spec, Problems& problems) {
    if (!is_supported_version(spec.oci_version)) {
        problems.add("ociVersion", expected_but_found(spec.oci_version, "a semantic version 1.x.y"));
    }
    if (spec.root.path.empty()) problems.add("root.path", "missing, required: the path of the root file system");
    for (size_t i = 0; i < spec.mounts.size(); ++i) {
        validate_mount(spec.mounts[i], element_path("mounts", i), spec.linux_, problems);
    }
    if (spec.process) validate_process(*spec.process, "process", problems);
    else problems.add("process", "missing, required: the process to run");
    validate_host_name("hostname", spec.hostname, spec.linux_, problems);
    validate_host_name("domainname", spec.domainname, spec.linux_, problems);
    for (const HookKind& kind : kHookKinds) {
        validate_hooks(member_path("hooks", kind.name), spec.hooks.*kind.list, problems);
    }
    if (spec.annotations.contains("")) problems.add(member_path("annotations", ""), "a name must not be empty");
    validate_linux(spec.linux_, problems);
}

void validate_bundle(const Spec& spec, const std::string& bundle, Problems& problems) {
    if (spec.root.path.empty()) return;  // said by validate_spec
    const std::string root = spec.root.path.starts_with('/') ? spec.root.path : concat(bundle, '/', spec.root.path);
    struct stat info {};
    if (::stat(root.c_str(), &info) != 0) {
        problems.add("root.path", errno_error(root).message);
    } else if (!S_ISDIR(info.st_mode)) {
        problems.add("root.path", concat(root, ": not a directory"));
    }
}

}  // namespace pinfold
