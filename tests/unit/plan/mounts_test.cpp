// Mount options to attributes.
#include <sys/mount.h>

#include "plan/plan.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

MountRequest plan_one(Mount mount) {
    Spec spec;
    spec.mounts = {std::move(mount)};
    auto requests = plan_mounts(spec, {.id = "web", .bundle = "/bundle"}, {});
    REQUIRE(requests);
    return requests->front();
}

MountRequest bind(std::vector<std::string> options) {
    return plan_one({"/data", "bind", "vol", std::move(options), {}, {}});
}
MountRequest tmpfs(std::vector<std::string> options) {
    return plan_one({"/tmp", "tmpfs", "tmpfs", std::move(options), {}, {}});
}

}  // namespace

TEST_CASE("mount options: binds") {
    CHECK(bind({}).kind == MountRequest::Kind::bind);
    CHECK(bind({}).filesystem.source == "/bundle/vol");
    CHECK_FALSE(bind({"bind"}).recursive);
    CHECK(bind({"rbind"}).recursive);
    CHECK(plan_one({"/data", "none", "/vol", {"rbind"}, {}, {}}).kind == MountRequest::Kind::bind);
    CHECK(bind({"bind", "size=1m"}).filesystem.options.empty());
}

TEST_CASE("mount options: the last one of a pair holds") {
    CHECK(bind({"ro", "nosuid"}).change.set == (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID));
    const MountRequest writable = bind({"ro", "rw"});
    CHECK(writable.change.set == 0);
    CHECK(writable.change.clear == MOUNT_ATTR_RDONLY);
    CHECK(bind({"rw", "ro"}).change.set == MOUNT_ATTR_RDONLY);
    CHECK(bind({"rw", "ro"}).change.clear == 0);
}

TEST_CASE("mount options: access times are one choice") {
    const MountRequest noatime = bind({"strictatime", "noatime"});
    CHECK(noatime.change.set == MOUNT_ATTR_NOATIME);
    CHECK(noatime.change.clear == MOUNT_ATTR__ATIME);
    const MountRequest relatime = bind({"noatime", "relatime"});
    CHECK(relatime.change.set == 0);
    CHECK(relatime.change.clear == MOUNT_ATTR__ATIME);
}

TEST_CASE("mount options: whole trees") {
    const MountRequest request = bind({"rbind", "rro", "rslave", "rnoexec"});
    CHECK(request.recursive_change.set == (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC));
    CHECK(request.recursive_change.propagation == MS_SLAVE);
    CHECK(request.change.empty());
}

TEST_CASE("mount options: what a file system gets") {
    const MountRequest request = tmpfs({"nosuid", "size=64k", "noswap", "ro", "silent"});
    CHECK(request.kind == MountRequest::Kind::filesystem);
    CHECK(request.filesystem.attributes == (MOUNT_ATTR_NOSUID | MOUNT_ATTR_RDONLY));
    REQUIRE(request.filesystem.options.size() == 3);
    CHECK(request.filesystem.options[0].key == "size");
    CHECK(request.filesystem.options[0].value == "64k");
    CHECK(request.filesystem.options[1].is_flag);
    CHECK(request.filesystem.options[2].key == "ro");  // of the file system itself, besides the mount's attribute
    CHECK(tmpfs({"tmpcopyup"}).copy_up);
}

TEST_CASE("mount options: what starts with files becomes read-only when they are there") {
    const MountRequest request = tmpfs({"ro", "nosuid", "tmpcopyup"});
    CHECK(request.filesystem.attributes == MOUNT_ATTR_NOSUID);
    CHECK(request.filesystem.options.empty());
    CHECK(request.change.set == MOUNT_ATTR_RDONLY);
}

TEST_CASE("mount options: cgroup is cgroup2, proc and sysfs need a plain directory") {
    const MountRequest cgroup = plan_one({"/sys/fs/cgroup", "cgroup", "cgroup", {"ro"}, {}, {}});
    CHECK(cgroup.kind == MountRequest::Kind::cgroup);
    CHECK(cgroup.filesystem.type == "cgroup2");
    CHECK(plan_one({"/proc", "proc", "proc", {}, {}, {}}).plain_destination);
    CHECK(plan_one({"/sys", "sysfs", "sysfs", {}, {}, {}}).plain_destination);
    CHECK_FALSE(tmpfs({}).plain_destination);
}

TEST_CASE("mount options: id maps of the mount, or of the container, or an error") {
    const MountRequest own = plan_one({"/data", "bind", "/vol", {"bind"}, {{0, 5, 1}}, {{0, 6, 1}}});
    REQUIRE(own.id_maps);
    CHECK(own.id_maps->uids[0].outside == 5);
    CHECK(own.id_maps->gids[0].outside == 6);
    Spec spec;
    spec.mounts = {{"/data", "bind", "/vol", {"rbind", "ridmap"}, {}, {}}};
    CHECK_FALSE(plan_mounts(spec, {.id = "web", .bundle = "/bundle"}, {}));
    spec.linux_.uid_mappings = spec.linux_.gid_mappings = {{0, 7, 1}};
    auto requests = plan_mounts(spec, {.id = "web", .bundle = "/bundle"}, {});
    REQUIRE(requests);
    CHECK(requests->front().recursive_id_maps);
    CHECK(requests->front().id_maps->uids[0].outside == 7);
}

TEST_CASE("mount options: the names that are told are not the file system's") {
    const std::vector<std::string_view> names = mount_option_names();
    CHECK(names.size() > 40);
    for (const std::string_view name : names) {
        CAPTURE(name);
        Spec spec;
        spec.linux_.uid_mappings = spec.linux_.gid_mappings = {{0, 1000, 1}};  // for idmap
        spec.mounts = {{"/tmp", "tmpfs", "tmpfs", {std::string(name), "size=1m"}, {}, {}}};
        const auto requests = plan_mounts(spec, {.id = "web", .bundle = "/bundle"}, {});
        REQUIRE(requests);
        for (const auto& option : requests->front().filesystem.options) CHECK((option.key == "size" || name == "ro"));
    }
}
