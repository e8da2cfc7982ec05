// The top of config.json: version, root, mounts, hooks; process and linux have files of their own.
#include "base/strings.hpp"
#include "spec/parse.hpp"
#include "spec/words.hpp"

namespace pinfold {

static void read(const Reader& object, Root& root) {
    object.required("path", root.path);
    object.optional("readonly", root.readonly);
}

static void read(const Reader& object, Mount& mount) {
    object.required("destination", mount.destination);
    object.optional("type", mount.type);
    object.optional("source", mount.source);
    object.optional("options", mount.options);
    object.optional("uidMappings", mount.uid_mappings);
    object.optional("gidMappings", mount.gid_mappings);
}

static void read(const Reader& object, Hook& hook) {
    object.required("path", hook.path);
    object.optional("args", hook.args);
    object.optional("env", hook.env);
    object.optional("timeout", hook.timeout);
}

static void read(const Reader& object, Hooks& hooks) {
    for (const HookKind& kind : kHookKinds) object.optional(kind.name, hooks.*kind.list);
}

// "1.2.1-rc.1": 2. What is no version is said elsewhere.
static unsigned minor_version(std::string_view version) {
    const std::vector<std::string_view> numbers = split(version, '.');
    return numbers.size() < 2 ? 0 : parse_number<unsigned>(numbers[1]).value_or(0);
}

// A limit of 0 processes is one since 1.3. Before, it was how engines said that there is none.
static void read_by_version(Spec& spec) {
    std::optional<int64_t>& limit = spec.linux_.resources.pids_limit;
    if (limit == 0 && minor_version(spec.oci_version) < 3) limit = -1;
}

static void read(const Reader& object, Spec& spec) {
    object.required("ociVersion", spec.oci_version);
    object.optional("root", spec.root);
    object.optional("mounts", spec.mounts);
    object.optional("process", spec.process);
    object.optional("hostname", spec.hostname);
    object.optional("domainname", spec.domainname);
    object.optional("hooks", spec.hooks);
    object.optional("annotations", spec.annotations);
    object.optional("linux", spec.linux_);
    read_by_version(spec);
}

void read(const Reader& object, IdMapping& mapping) {
    object.required("containerID", mapping.container_id);
    object.required("hostID", mapping.host_id);
    object.required("size", mapping.size);
}

Spec parse_spec(Json&& root, Problems& problems) {
    Json tree = std::move(root);
    Spec spec;
    Reader(std::move(tree), problems).into(spec);
    return spec;
}

Spec parse_spec(const Json& root, Problems& problems, std::set<std::string>* consumed) {
    Spec spec;
    Reader(root, problems, consumed).into(spec);
    return spec;
}

}  // namespace pinfold
