// What is measured. The state directories lie on the benchmark's tmpfs, as /run does on most machines.
#include "variants.hpp"

#include <unistd.h>

#include <cstdlib>

#include "base/strings.hpp"

namespace pinfold::bench {

namespace {

using Arguments = std::vector<std::string>;

std::string find_program(const std::string& name) {
    const char* path = std::getenv("PATH");
    const std::string places = concat(path != nullptr ? path : "", ":/usr/sbin:/usr/bin:/sbin:/bin");
    for (const std::string_view place : split(places, ':')) {
        const std::string candidate = concat(place, "/", name);
        if (!place.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return "";
}

Arguments words(std::string_view text) {
    Arguments result;
    for (const std::string_view word : split(text, ' ')) result.emplace_back(word);
    return result;
}

void append(Arguments& list, const Arguments& more) { list.insert(list.end(), more.begin(), more.end()); }

std::string why_not(const std::string& program) {
    return program.empty() || ::access(program.c_str(), X_OK) != 0 ? "not installed" : "";
}

// "PROGRAM [globals] --root DIR run --bundle DIR ID": the three runtimes share this form.
Variant runtime(const Surroundings& at, const std::string& name, const std::string& program, const Arguments& globals) {
    Variant variant{name, program, globals.empty(), why_not(program), nullptr};
    const std::string root = concat(at.workplace.directory(), "/state-", name);
    variant.command = [program, globals, root, bundle = at.bundle](const std::string& id) {
        Command command{{program}, false};
        append(command.argv, globals);
        append(command.argv, {"--root", root, "run", "--bundle", bundle, id});
        return command;
    };
    return variant;
}

Variant plain(const std::string& name, const std::string& program, const Arguments& arguments) {
    Variant variant{name, program, false, why_not(program), nullptr};
    variant.command = [program, arguments](const std::string&) {
        Command command{{program}, false};
        append(command.argv, arguments);
        return command;
    };
    return variant;
}

Variant crun_with_cgroup(const Surroundings& at, const std::string& program) {
    Variant variant = runtime(at, "crun+cgroup", program, {});
    if (at.workplace.can_raise_memlock()) return variant;
    variant.command = [inner = std::move(variant.command)](const std::string& id) {
        Command command = inner(id);
        command.pretend_memlock = true;
        return command;
    };
    return variant;
}

Variant floor_with_cgroup(const Surroundings& at, const std::string& rootfs) {
    Variant variant = plain("floor+cgroup", at.programs.floor, {"--cgroup", at.cgroup_directory, rootfs, "/bin/true"});
    variant.cgroup = true;
    if (!at.workplace.has_cgroup2()) variant.skip_reason = "no cgroup v2 hierarchy";
    return variant;
}

// As near to the bundle as bwrap's options come: no masked paths, no rlimit, sysfs by bind mount.
Variant bwrap(const std::string& rootfs) {
    Arguments arguments = words("--unshare-ipc --unshare-pid --unshare-net --unshare-uts --unshare-cgroup --as-pid-1");
    append(arguments, words("--new-session --hostname bench --cap-drop ALL --cap-add CAP_AUDIT_WRITE"));
    append(arguments, words("--cap-add CAP_KILL --cap-add CAP_NET_BIND_SERVICE"));
    append(arguments, {"--ro-bind", rootfs, "/"});
    append(arguments, words("--proc /proc --dev /dev --mqueue /dev/mqueue --ro-bind /sys /sys --chdir / /bin/true"));
    return plain("bwrap", find_program("bwrap"), arguments);
}

Variant never(const std::string& name, const std::string& program, const std::string& reason) {
    return {name, program, false, reason, nullptr};
}

}  // namespace

std::vector<Variant> list_variants(const Surroundings& at) {
    const std::string rootfs = at.bundle + "/rootfs";
    const std::string crun = find_program("crun");
    const std::string runc = find_program("runc");
    const Arguments no_cgroup = {"--cgroup-manager", "disabled"};
    return {
        plain("exec", at.programs.payload, {}),
        plain("floor", at.programs.floor, {rootfs, "/bin/true"}),
        runtime(at, "pinfold", at.programs.pinfold, no_cgroup),
        runtime(at, "crun", crun, no_cgroup),
        never("runc", runc, "it cannot do without cgroups"),
        bwrap(rootfs),
        floor_with_cgroup(at, rootfs),
        runtime(at, "pinfold+cgroup", at.programs.pinfold, {}),
        crun_with_cgroup(at, crun),
        runtime(at, "runc+cgroup", runc, {}),
    };
}

}  // namespace pinfold::bench
