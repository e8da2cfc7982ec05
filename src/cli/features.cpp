// pinfold features: what this runtime can do, told from the tables that decide it.
#include "base/strings.hpp"
#include "cgroup/systemd.hpp"
#include "cli/verbs.hpp"
#include "cli/version.hpp"
#include "json/json.hpp"
#include "kernel/capabilities.hpp"
#include "plan/plan.hpp"
#include "seccomp/compile.hpp"
#include "spec/parse.hpp"
#include "spec/words.hpp"

namespace pinfold {

namespace {

constexpr const char* kOldestSpecVersion = "1.0.0";

Json object(Json::Object members) { return Json{std::move(members)}; }

Json enabled(bool yes) { return object({{"enabled", Json{yes}}}); }

Json supports(std::string_view property) { return Json{is_supported(property)}; }

Json hooks() {
    std::vector<std::string_view> names;
    for (const HookKind& kind : kHookKinds) {
        if (is_supported(concat("hooks.", kind.name))) names.push_back(kind.name);
    }
    return json_of(names);
}

Json cgroup_features() {
    return object({{"v1", Json{true}},
                   {"v2", Json{true}},
                   {"systemd", Json{has_scope_program()}},
                   {"systemdUser", Json{has_scope_program()}},
                   {"rdma", supports("linux.resources.rdma")}});
}

// libseccomp may be older than the specification.
Json architectures() {
    std::vector<std::string_view> names;
    for (const std::string_view name : seccomp_architectures()) {
        if (knows_seccomp_architecture(name)) names.push_back(name);
    }
    return json_of(names);
}

Json seccomp_features() {
    const SeccompWords words = seccomp_words();
    return object({{"enabled", Json{true}},
                   {"actions", json_of(words.actions)},
                   {"operators", json_of(words.operators)},
                   {"archs", architectures()},
                   {"knownFlags", json_of(words.flags)},
                   {"supportedFlags", json_of(words.kernel_flags)}});
}

Json linux_features() {
    return object({
        {"namespaces", json_of(namespace_types())},
        {"capabilities", json_of(capability_names())},
        {"cgroup", cgroup_features()},
        {"seccomp", seccomp_features()},
        {"apparmor", enabled(true)},
        {"selinux", enabled(true)},
        {"memoryPolicy",
         object({{"modes", json_of(memory_policy_modes())}, {"flags", json_of(memory_policy_flags())}})},
        {"intelRdt", object({{"enabled", supports("linux.intelRdt")},
                             {"schemata", supports("linux.intelRdt.schemata")},
                             {"monitoring", supports("linux.intelRdt.enableMonitoring")}})},
        {"mountExtensions", object({{"idmap", enabled(true)}})},
        {"netDevices", enabled(true)},
    });
}

Json annotations() {
    return object({{"io.github.seccomp.libseccomp.version", json_of(libseccomp_version())},
                   {"org.pinfold.commit", json_of(kCommit)},
                   {"org.pinfold.version", json_of(kVersion)}});
}

}  // namespace

Result<int> verb_features() {
    // The annotations that pinfold knows only restrict, so none of them can be unsafe.
    TRY(print(json_text(object({{"ociVersionMin", json_of(kOldestSpecVersion)},
                                {"ociVersionMax", json_of(kSpecVersion)},
                                {"hooks", hooks()},
                                {"mountOptions", json_of(mount_option_names())},
                                {"linux", linux_features()},
                                {"annotations", annotations()},
                                {"potentiallyUnsafeConfigAnnotations", Json{Json::Array{}}}}))));
    return 0;
}

}  // namespace pinfold
