// find_cgroup_host: what it finds is a cgroup v2 hierarchy, and whether this user may make groups there.
#include "cgroup/control_files.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "real_group.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

TEST_CASE("layout: the hierarchy that is found is one") {
    const CgroupHost host = find_cgroup_host().value();
    if (host.mount.empty()) SKIP_TEST("cgroup v2 is not mounted");
    CHECK(::access((host.mount + "/cgroup.subtree_control").c_str(), F_OK) == 0);
    CHECK(host.hybrid == host.mount.ends_with("/unified"));
}

TEST_CASE("layout: a user without rights finds it not writable") {
    RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
        ::_exit(find_cgroup_host().value().writable ? 1 : 0);
    }
    CHECK(outcome(child) == 0);
}

TEST_CASE("layout: hierarchies of cgroup v1 have the controllers they are named after") {
    const CgroupHost host = find_cgroup_host().value();
    if (host.v1.empty()) SKIP_TEST("cgroup v1 is not mounted");
    for (const auto& entry : host.v1) {
        const std::string& controller = entry.first;
        const std::string& mount = entry.second;
        CAPTURE(controller);
        CHECK(::access((mount + "/cgroup.procs").c_str(), F_OK) == 0);
        CHECK(("," + mount.substr(mount.rfind('/') + 1) + ",").find("," + controller + ",") != std::string::npos);
    }
}
