// Facts about this host and this caller.
#include "plan/host_facts.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "kernel/capabilities.hpp"
#include "kernel/namespaces.hpp"

namespace pinfold {

Result<HostFacts> gather_host_facts() {
    HostFacts facts;
    facts.uid = ::geteuid();
    facts.gid = ::getegid();
    facts.initial_user_namespace = TRY(in_initial_user_namespace());
    facts.capabilities = TRY(own_permitted_capabilities());
    facts.cgroup = TRY_IN("find the cgroups", find_cgroup_host());
    struct stat binary {};
    if (::stat("/proc/self/exe", &binary) == 0) {
        facts.binary_owner = binary.st_uid;
        facts.binary_mode = binary.st_mode;
    } else {
        facts.binary_mode = 0777;  // unknown: protect it
    }
    return facts;
}

}  // namespace pinfold
