// The plan: pure, so a config and facts in, decisions out.
#include "plan/plan.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

HostFacts root_facts() {
    HostFacts host;
    host.capabilities = ~uint64_t{0};
    host.cgroup.mount = "/sys/fs/cgroup";
    host.binary_mode = S_IFREG | 0755;
    return host;
}

HostFacts user_facts() {
    HostFacts host = root_facts();
    host.uid = 1000;
    host.gid = 1000;
    host.capabilities = 0;
    host.cgroup.writable = false;
    return host;
}

Spec small_spec() {
    Spec spec;
    spec.oci_version = "1.2.0";
    spec.root.path = "rootfs";
    spec.process.emplace();
    spec.process->args = {"/bin/true"};
    spec.process->cwd = "/";
    spec.linux_.namespaces = {
        {NamespaceType::mount, ""}, {NamespaceType::pid, ""}, {NamespaceType::ipc, ""}, {NamespaceType::cgroup, ""}};
    return spec;
}

Spec user_namespace_spec(uint32_t host_id, uint32_t size) {
    Spec spec = small_spec();
    spec.linux_.namespaces.push_back({NamespaceType::user, ""});
    spec.linux_.uid_mappings = {{0, host_id, size}};
    spec.linux_.gid_mappings = {{0, host_id, size}};
    return spec;
}

Plan plan_of(const Spec& spec, const HostFacts& host = root_facts()) {
    auto plan = make_plan(spec, {.id = "web", .bundle = "/bundle"}, host);
    REQUIRE(plan);
    return std::move(plan).value();
}

}  // namespace

TEST_CASE("plan: namespaces are made by the clone, but for those that the child must make") {
    const Plan plan = plan_of(small_spec());
    CHECK(plan.namespaces.create == (CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC));
    CHECK(plan.namespaces.create_in_child == CLONE_NEWCGROUP);
    CHECK_FALSE(plan.namespaces.needs_joiner());
    const Plan mapped = plan_of(user_namespace_spec(100000, 65536));
    CHECK(mapped.namespaces.create_in_child == (CLONE_NEWCGROUP | CLONE_NEWIPC));
    CHECK(mapped.namespaces.creates(CLONE_NEWIPC));
}

TEST_CASE("plan: joining and shifting clocks take a joiner") {
    Spec spec = small_spec();
    spec.linux_.namespaces.push_back({NamespaceType::network, "/run/netns/a"});
    const Plan joining = plan_of(spec);
    CHECK(joining.namespaces.needs_joiner());
    CHECK(joining.namespaces.joins(CLONE_NEWNET));
    CHECK_FALSE(joining.namespaces.creates(CLONE_NEWNET));
    Spec clocks = user_namespace_spec(1000, 1);
    clocks.linux_.namespaces.push_back({NamespaceType::time, ""});
    CHECK(plan_of(clocks).namespaces.needs_joiner());
    CHECK_FALSE(plan_of(clocks).namespaces.user_before_time);
    CHECK(plan_of(clocks, user_facts()).namespaces.user_before_time);
}

TEST_CASE("plan: who writes the id maps") {
    CHECK_FALSE(plan_of(user_namespace_spec(100000, 65536)).id_maps->by_helper);
    const Plan own_id = plan_of(user_namespace_spec(1000, 1), user_facts());
    CHECK_FALSE(own_id.id_maps->by_helper);
    CHECK(own_id.id_maps->deny_setgroups);
    CHECK_FALSE(own_id.process.identity.set_groups);
    const Plan ranges = plan_of(user_namespace_spec(100000, 65536), user_facts());
    CHECK(ranges.id_maps->by_helper);
    CHECK_FALSE(ranges.id_maps->deny_setgroups);
}

TEST_CASE("plan: pinfold's own file is protected wherever the container could write it") {
    CHECK(plan_of(small_spec()).process.protect_binary);
    CHECK_FALSE(plan_of(user_namespace_spec(100000, 65536)).process.protect_binary);
    CHECK(plan_of(user_namespace_spec(0, 65536)).process.protect_binary);
    CHECK_FALSE(plan_of(user_namespace_spec(1000, 1), user_facts()).process.protect_binary);
    HostFacts own_build = user_facts();
    own_build.binary_owner = 1000;
    CHECK(plan_of(user_namespace_spec(1000, 1), own_build).process.protect_binary);
    HostFacts loose = root_facts();
    loose.binary_mode = S_IFREG | 0757;
    CHECK(plan_of(user_namespace_spec(100000, 65536), loose).process.protect_binary);
}

TEST_CASE("plan: a mount namespace of the container's own is needed") {
    Spec spec = small_spec();
    std::erase_if(spec.linux_.namespaces, [](const Namespace& one) { return one.type == NamespaceType::mount; });
    CHECK_FALSE(make_plan(spec, {.id = "web", .bundle = "/bundle"}, root_facts()));
    spec.linux_.namespaces.push_back({NamespaceType::mount, "/run/mnt"});
    CHECK(make_plan(spec, {.id = "web", .bundle = "/bundle"}, root_facts()));
    spec.mounts = {{"/proc", "proc", "proc", {}, {}, {}}};
    CHECK_FALSE(make_plan(spec, {.id = "web", .bundle = "/bundle"}, root_facts()));
}

TEST_CASE("plan: capabilities that cannot be had are left out, and the kernel's rules kept") {
    Spec spec = small_spec();
    spec.process->capabilities = Capabilities{{"CAP_CHOWN", "CAP_KILL", "CAP_NO_SUCH"},
                                              {"CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"},
                                              {"CAP_CHOWN", "CAP_KILL"},
                                              {"CAP_CHOWN", "CAP_SYS_ADMIN"},
                                              {"CAP_CHOWN", "CAP_KILL"}};
    HostFacts host = root_facts();
    const CapabilitySets all = plan_of(spec, host).process.capabilities;
    CHECK(all.bounding == ((1u << 0) | (1u << 5)));
    CHECK(all.effective == all.permitted);
    CHECK(all.inheritable == 1);  // CAP_SYS_ADMIN is not in the bounding set
    CHECK(all.ambient == 1);      // CAP_KILL is not inheritable
    host.capabilities = 1u << 5;
    CHECK(plan_of(spec, host).process.capabilities.permitted == (1u << 5));
    spec.process->capabilities.reset();
    CHECK(plan_of(spec, root_facts()).process.capabilities.bounding == 0);
}

TEST_CASE("plan: devices, the standard ones and the configured, each once") {
    Spec spec = small_spec();
    spec.linux_.devices = {{"/dev/null", 'c', 1, 3, 0600, 5, 6}, {"/dev/pipe", 'p', 0, 0, {}, {}, {}}};
    const Plan plan = plan_of(spec);
    CHECK(plan.devices.size() == 7);
    CHECK(plan.devices[0].mode == (S_IFCHR | 0600));
    CHECK(plan.devices[0].uid == 5);
    CHECK(plan.devices[1].mode == (S_IFIFO | 0666));
    spec.mounts = {{"/dev", "bind", "/dev", {"rbind"}, {}, {}}};
    CHECK(plan_of(spec).devices.empty());
    CHECK(plan_of(spec).links.empty());
}

TEST_CASE("plan: sysctl keys with dots and with slashes") {
    Spec spec = small_spec();
    spec.linux_.sysctl = {{"net.ipv4.ip_forward", "1"},
                          {"net/ipv4/conf/eth0.1/forwarding", "1"},
                          {"net.ipv4.conf.eth0/2.forwarding", "1"}};
    std::vector<std::string> paths;
    for (const SysctlSetting& setting : plan_of(spec).sysctls) paths.push_back(setting.path);
    std::sort(paths.begin(), paths.end());
    CHECK(paths == std::vector<std::string>{"sys/net/ipv4/conf/eth0.1/forwarding",
                                            "sys/net/ipv4/conf/eth0.2/forwarding", "sys/net/ipv4/ip_forward"});
}

TEST_CASE("plan: memory policy nodes") {
    Spec spec = small_spec();
    spec.linux_.memory_policy = MemoryPolicy{"MPOL_BIND", "0-2,5,64", {"MPOL_F_STATIC_NODES"}};
    const Plan plan = plan_of(spec);
    CHECK(plan.process.memory_policy->mode == (2 | 1 << 15));
    CHECK(plan.process.memory_policy->nodes == std::vector<unsigned long>{0b100111, 1});
}

TEST_CASE("plan: whom the pipes are given to") {
    Spec spec = small_spec();
    CHECK_FALSE(plan_of(spec).stream_owner);
    spec.process->user.uid = 1000;
    CHECK(plan_of(spec).stream_owner == 1000);
    Spec mapped = user_namespace_spec(100000, 65536);
    mapped.process->user.uid = 5;
    CHECK(plan_of(mapped).stream_owner == 100005);
}

TEST_CASE("plan: relative paths are the bundle's") {
    CHECK(plan_of(small_spec()).root.path == "/bundle/rootfs");
    Spec spec = small_spec();
    spec.root.path = "/srv/root";
    CHECK(plan_of(spec).root.path == "/srv/root");
    spec.linux_.rootfs_propagation = "rslave";
    CHECK(plan_of(spec).root.propagation == MS_SLAVE);
    CHECK(plan_of(spec).root.recursive_propagation);
}
