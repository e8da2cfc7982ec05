// Id maps, as the kernel takes them.
#include "kernel/id_maps.hpp"

#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "support/testing.hpp"

using namespace pinfold;

TEST_CASE("id maps: one line per range") {
    CHECK(id_map_lines({}) == "");
    CHECK(id_map_lines({{0, 1000, 1}, {1, 100000, 65536}}) == "0 1000 1\n1 100000 65536\n");
}

TEST_CASE("id maps: a user namespace for an id-mapped mount, and no process left in it") {
    if (::geteuid() != 0) SKIP_TEST("mapping foreign ids takes root");
    const IdMaps maps{{{0, 100000, 10}}, {{0, 100000, 10}}, false, false};
    const auto made = make_user_namespace(maps);
    REQUIRE(made);
    CHECK(::ioctl(made->get(), NS_GET_NSTYPE) == CLONE_NEWUSER);
}

TEST_CASE("id maps: what the kernel refuses is an error, and leaves no process") {
    if (::geteuid() != 0) SKIP_TEST("mapping foreign ids takes root");
    const auto overlapping = make_user_namespace({{{0, 1000, 10}, {5, 2000, 10}}, {{0, 1000, 10}}, false, false});
    REQUIRE_FALSE(overlapping);
    CHECK(overlapping.error().code == EINVAL);
}
