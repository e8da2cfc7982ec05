// Updates: halves completed with what the group has, all or nothing, and devices on a real group.
#include "cgroup/cgroup.hpp"

#include <sys/sysmacros.h>

#include <filesystem>

#include "real_group.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using namespace pinfold::testing;

namespace {

// Files without a kernel behind them. Old and new values have the same length, so that a file shows the last write.
class MadeUpGroup {
public:
    MadeUpGroup() {
        std::filesystem::create_directory(tree_.file("web"));
        write("cgroup.controllers", "memory cpu io pids\n");
        write("cgroup.subtree_control", "memory cpu io pids\n");
    }
    void set(const std::string& file, const std::string& value) const { write("web/" + file, value + "\n"); }
    std::string get(const std::string& file) const {
        const auto text = read_file(tree_.file("web/" + file));
        return text ? std::string(split(*text, '\n')[0]) : "absent";
    }
    std::string update(const Resources& resources) const {
        const auto updated = update_cgroup({tree_.path(), "/web", {}, {}}, resources);
        return updated ? "" : updated.error().message;
    }
    std::string name() const { return concat("cgroup ", tree_.path(), "/web"); }

private:
    void write(const std::string& path, const std::string& text) const {
        const UniqueFd fd(::open(tree_.file(path).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        REQUIRE(write_once(fd.get(), text, path));
    }

    TempDir tree_;
};

// What open() answers in the group: 0 or an errno.
int open_in(int group, const std::string& path) {
    return outcome(spawn_in(group, [&] { return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) ? 0 : errno; }));
}

}  // namespace

TEST_CASE("update: zeros change nothing") {
    const MadeUpGroup group;
    group.set("memory.max", "4096");
    group.set("pids.max", "5");
    Resources zeros;
    zeros.memory.limit = 0;
    zeros.memory.swap = 0;
    zeros.memory.kernel = 0;
    zeros.cpu.shares = 0;
    zeros.cpu.quota = 0;
    zeros.pids_limit = 0;
    zeros.block_io.weight = 0;
    CHECK(group.update(zeros) == "");
    CHECK(group.get("memory.max") == "4096");
    CHECK(group.get("pids.max") == "5");
}

TEST_CASE("update: memory and swap together stay, where one of them changes") {
    const MadeUpGroup group;
    group.set("memory.max", "4000");
    group.set("memory.swap.max", "3000");
    Resources resources;
    resources.memory.limit = 5000;
    CHECK(group.update(resources) == "");
    CHECK(group.get("memory.max") == "5000");
    CHECK(group.get("memory.swap.max") == "2000");

    resources.memory = {};
    resources.memory.swap = 9000;
    CHECK(group.update(resources) == "");
    CHECK(group.get("memory.max") == "5000");
    CHECK(group.get("memory.swap.max") == "4000");

    resources.memory = {};
    resources.memory.limit = 9001;
    CHECK(group.update(resources) ==
          "linux.resources.memory.limit: 9001 is more than the 9000 that memory and swap together may have");
    CHECK(group.get("memory.max") == "5000");
}

TEST_CASE("update: limits that were not there, or shall not be there any longer") {
    const MadeUpGroup group;
    group.set("memory.max", "max");
    group.set("memory.swap.max", "max");
    Resources resources;
    resources.memory.swap = 9000;
    CHECK(group.update(resources) ==
          "linux.resources.memory.swap: counts memory and swap together, so it needs linux.resources.memory.limit as "
          "well");
    resources.memory.swap.reset();
    resources.memory.limit = 500;
    CHECK(group.update(resources) == "");
    CHECK(group.get("memory.max") == "500");
    CHECK(group.get("memory.swap.max") == "max");

    group.set("memory.swap.max", "300");
    resources.memory.limit = -1;
    CHECK(group.update(resources) == "");
    CHECK(group.get("memory.max") == "max");
    CHECK(group.get("memory.swap.max") == "max");
}

TEST_CASE("update: the kernel's default is written back, and is no need for a controller") {
    const MadeUpGroup group;
    Resources resources;
    resources.pids_limit = -1;
    resources.cpu.idle = 0;
    CHECK(group.update(resources) == "");
    CHECK(group.get("pids.max") == "absent");
    group.set("pids.max", "123");
    group.set("cpu.idle", "1");
    CHECK(group.update(resources) == "");
    CHECK(group.get("pids.max") == "max");
    CHECK(group.get("cpu.idle") == "0");
}

TEST_CASE("update: quota and period") {
    const MadeUpGroup group;
    group.set("cpu.max", "20000 50000");
    Resources resources;
    resources.cpu.quota = 10000;
    CHECK(group.update(resources) == "");
    CHECK(group.get("cpu.max") == "10000 50000");
    resources.cpu = {};
    resources.cpu.period = 90000;
    CHECK(group.update(resources) == "");
    CHECK(group.get("cpu.max") == "10000 90000");
}

TEST_CASE("update: all or nothing") {
    const MadeUpGroup group;
    group.set("memory.max", "4000");
    group.set("cpu.max", "20000 50000");
    Resources resources;
    resources.memory.limit = 5000;
    resources.cpu.quota = 10000;
    resources.pids_limit = 5;  // there is no such file
    CHECK(group.update(resources).starts_with(group.name() + ": linux.resources.pids.limit: open pids.max: "));
    CHECK(group.get("memory.max") == "4000");
    CHECK(group.get("cpu.max") == "20000 50000");
}

TEST_CASE("update: twins are set together, and put back together") {
    const MadeUpGroup group;
    group.set("io.weight", "default 100");
    group.set("io.bfq.weight", "default 100");
    Resources resources;
    resources.block_io.weight = 110;
    CHECK(group.update(resources) == "");
    CHECK(group.get("io.weight") == "default 1011");
    CHECK(group.get("io.bfq.weight") == "default 110");

    group.set("io.max", "8:16 rbps=1");
    resources.block_io.weight = 500;
    resources.block_io.throttle_write_bps_device = {{8, 0, 4096}};
    resources.unified = {{"memory.nonsense", "1"}};
    CHECK(group.update(resources).find("linux.resources.unified.memory.nonsense: open ") != std::string::npos);
    CHECK(group.get("io.weight") == "default 1011");
    CHECK(group.get("io.bfq.weight") == "default 110");
    CHECK(group.get("io.max") == "8:0 rbps=max wbps=max riops=max wiops=max");

    const MadeUpGroup only_bfq;
    only_bfq.set("io.bfq.weight", "default 100");
    resources = {};
    resources.block_io.weight = 110;
    CHECK(only_bfq.update(resources) == "");
    CHECK(only_bfq.get("io.bfq.weight") == "default 110");

    const MadeUpGroup neither;
    CHECK(neither.update(resources).find("linux.resources.blockIO.weight: open io.weight: ") != std::string::npos);
}

TEST_CASE("update: memory.checkBeforeUpdate refuses a limit below the usage") {
    const MadeUpGroup group;
    group.set("memory.max", "9000");
    group.set("memory.swap.max", "9000");
    group.set("memory.current", "5000");
    group.set("memory.swap.current", "1000");
    Resources resources;
    resources.memory.limit = 4999;
    resources.memory.swap = 9000;
    resources.memory.check_before_update = true;
    CHECK(group.update(resources) ==
          "linux.resources.memory.limit: 4999 is less than the 5000 in use, and "
          "linux.resources.memory.checkBeforeUpdate is true");
    resources.memory.limit = 5000;
    resources.memory.swap = 5999;
    CHECK(group.update(resources) ==
          "linux.resources.memory.swap: 5999 is less than the 6000 in use, and "
          "linux.resources.memory.checkBeforeUpdate is true");
    CHECK(group.get("memory.max") == "9000");
    resources.memory.swap = 6000;
    CHECK(group.update(resources) == "");
    CHECK(group.get("memory.max") == "5000");
    resources.memory.limit = 4000;
    resources.memory.check_before_update = false;
    CHECK(group.update(resources) == "");
    CHECK(group.get("memory.max") == "4000");
}

TEST_CASE("update: a controller that the host lacks is named") {
    const MadeUpGroup group;
    Resources resources;
    resources.pids_limit = 5;
    resources.hugepage_limits = {{"2MB", 0}};
    CHECK(group.update(resources).find("linux.resources.hugepageLimits[0]: this host's cgroup v2 at ") == 0);
}

TEST_CASE("update: a real kernel's refusal leaves what was there") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    if (!place.has_controller("hugetlb")) SKIP_TEST("no hugetlb controller below the top");
    REQUIRE(place.make());
    REQUIRE(write_file_at(place.open().get(), "hugetlb.2MB.max", "4194304"));
    Resources resources;
    resources.hugepage_limits = {{"2MB", 8388608}};
    CHECK(update_cgroup(place.at(), resources).has_value());
    CHECK(*read_file(place.file("hugetlb.2MB.max")) == "8388608\n");
    resources.hugepage_limits = {{"2MB", 0}, {"3MB", 0}};
    CHECK_FALSE(update_cgroup(place.at(), resources).has_value());
    CHECK(*read_file(place.file("hugetlb.2MB.max")) == "8388608\n");
}

TEST_CASE("update: device rules take the place of those before") {
    const RealGroup place;
    if (!place.usable()) SKIP_TEST(place.why_not());
    if (::geteuid() != 0) SKIP_TEST("needs root");
    REQUIRE(place.make());
    const TempDir directory;
    const std::string node = directory.file("kmsg");
    REQUIRE(::mknod(node.c_str(), S_IFCHR | 0666, makedev(1, 11)) == 0);
    const UniqueFd group = place.open();
    const int unfiltered = open_in(group.get(), node);  // whatever this machine says of it
    if (unfiltered == EPERM) SKIP_TEST("/dev/kmsg is denied on this machine");
    const auto update = [&](std::vector<DeviceRule> rules) {
        Resources resources;
        resources.devices = std::move(rules);
        const auto updated = update_cgroup(place.at(), resources);
        CHECK_MESSAGE(updated, (updated ? "" : updated.error().message));
        return open_in(group.get(), node);
    };
    const DeviceRule allow{true, 'c', 1, 11, "r"};
    CHECK(update({DeviceRule{}}) == EPERM);  // the first of them
    CHECK(update({DeviceRule{}, allow}) == unfiltered);
    CHECK(update({}) == unfiltered);
    CHECK(update({DeviceRule{}}) == EPERM);
}
