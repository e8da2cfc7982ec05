// User namespaces: maps that root writes, a normal user's single id, and ranges by newuidmap.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

json entry(uint32_t inside, uint32_t outside, uint32_t size) {
    return {{"containerID", inside}, {"hostID", outside}, {"size", size}};
}

void map_ids(Bundle& bundle, const json& map) {
    bundle.add_namespace("user");
    bundle.config["linux"]["uidMappings"] = map;
    bundle.config["linux"]["gidMappings"] = map;
}

// The kernel pads the columns; one blank is enough here.
std::string squeezed(const json& text) {
    std::istringstream words(text.get<std::string>());
    std::string out;
    for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
    return out;
}

RunOptions as_user() {
    RunOptions options;
    options.spawn.uid = kNobodySpecial;
    options.spawn.env = {"HOME=/", "XDG_RUNTIME_DIR="};
    return options;
}

// A user who may map 200000..265535: known to newuidmap by files that only this program sees.
class SubordinateIds {
public:
    explicit SubordinateIds(const Bundle& bundle)
        : passwd_(file(bundle, "passwd", read_text("/etc/passwd") + "pentester:x:65000:65000::/:/bin/sh\n"),
                  "/etc/passwd", nullptr, MS_BIND),
          uids_(file(bundle, "subuid", "pentester:200000:65536\n"), "/etc/subuid", nullptr, MS_BIND),
          gids_(file(bundle, "subgid", "pentester:200000:65536\n"), "/etc/subgid", nullptr, MS_BIND) {}

private:
    static fs::path file(const Bundle& bundle, const char* name, const std::string& text) {
        write_text(bundle.host() / name, text);
        return bundle.host() / name;
    }
    MountGuard passwd_, uids_, gids_;
};

bool newuidmap_is_here() {
    return run_program({"sh", "-c", "command -v newuidmap newgidmap"}).status == 0 && fs::exists("/etc/subuid") &&
           fs::exists("/etc/subgid");
}

}  // namespace

TEST_CASE("id maps: root inside is a stranger outside") {
    NEEDS_ROOT();
    Bundle bundle;
    map_ids(bundle, json::array({entry(0, 100000, 1000), entry(1000, 300000, 64536)}));
    const Outcome outcome =
        run_probe(bundle, {{"report"}, {"stat", "/probe"}, {"stat", "/dev/null"}, {"open", "/dev/null", "rw"}});
    const json report = outcome.answer(0);
    CHECK(squeezed(report["proc"]["uid_map"]) == "0 100000 1000 1000 300000 64536");
    CHECK(squeezed(report["proc"]["gid_map"]) == "0 100000 1000 1000 300000 64536");
    CHECK(report["credentials"]["uid"] == json({0, 0, 0, 0}));
    CHECK(report["credentials"]["gid"] == json({0, 0, 0, 0}));
    CHECK(report["namespaces"]["user"] != own_namespace("user"));
    CHECK(outcome.answer(1)["uid"] == 65534);  // a file of the host's root
    CHECK(outcome.answer(2)["major"] == 1);    // nodes cannot be made there: they are bound from the host
    CHECK(outcome.answer(2)["minor"] == 3);
    CHECK(outcome.answer(3)["ok"] == true);
}

TEST_CASE("id maps: another user inside, with groups") {
    NEEDS_ROOT();
    Bundle bundle;
    map_ids(bundle, json::array({entry(0, 100000, 65536)}));
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1001}, {"additionalGids", {7, 8}}};
    fs::permissions(bundle.rootfs() / "tmp", fs::perms(0777));
    const Outcome outcome = run_probe(bundle, {{"report"}, {"create", "/tmp/mine", "x"}});
    const json ids = outcome.answer(0)["credentials"];
    CHECK(ids["uid"] == json({1000, 1000, 1000, 1000}));
    CHECK(ids["gid"] == json({1001, 1001, 1001, 1001}));
    CHECK(ids["groups"] == json({7, 8}));
    struct stat info {};
    REQUIRE(::stat((bundle.rootfs() / "tmp/mine").c_str(), &info) == 0);
    CHECK(info.st_uid == 101000);
    CHECK(info.st_gid == 101001);
}

TEST_CASE("id maps: capabilities reach no further than the namespace") {
    NEEDS_ROOT();
    Bundle bundle;
    map_ids(bundle, json::array({entry(0, 100000, 65536)}));
    for (const char* set : {"bounding", "effective", "permitted"}) {
        bundle.config["process"]["capabilities"][set] = {"CAP_SYS_ADMIN", "CAP_MKNOD", "CAP_CHOWN", "CAP_SYS_TIME"};
    }
    const Outcome outcome = run_probe(bundle, {{"mount", "tmpfs", "/data", "tmpfs"},
                                               {"mknod", "/tmp/node", "c", "1", "3"},
                                               {"create", "/probe-beside", "x"},
                                               {"report"}});
    CHECK(outcome.answer(0)["ok"] == true);
    CHECK(outcome.answer(1)["ok"] == false);
    CHECK(outcome.answer(2)["errno"] == "EACCES");  // the root directory is the host's root's
    CHECK(has(outcome.answer(3)["capabilities"]["effective"], "CAP_SYS_ADMIN"));
}

TEST_CASE("id maps: a normal user is root inside, and alone") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.make_rootless(kNobodySpecial);
    const Outcome outcome = run_probe(
        bundle, {{"report"}, {"create", "/made", "x"}, {"open", "/dev/null", "rw"}, {"connect-loopback"}}, as_user());
    INFO("stderr: ", outcome.err);
    CHECK(outcome.status == 0);
    const json report = outcome.answer(0);
    CHECK(report["credentials"]["uid"] == json({0, 0, 0, 0}));
    CHECK(squeezed(report["proc"]["uid_map"]) == "0 65000 1");
    CHECK(squeezed(report["proc"]["gid_map"]) == "0 65000 1");
    CHECK(report["proc"]["setgroups"] == "deny\n");
    CHECK(report["hosts"]["hostname"] == "inside");
    CHECK(mount_at(report, "/proc")["type"] == "proc");
    CHECK(outcome.answer(1)["ok"] == true);
    CHECK(outcome.answer(2)["ok"] == true);
    CHECK(outcome.answer(3)["ok"] == true);
    struct stat info {};
    REQUIRE(::stat((bundle.rootfs() / "made").c_str(), &info) == 0);
    CHECK(info.st_uid == kNobodySpecial);
}

TEST_CASE("id maps: a normal user without a user namespace is told so") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.make_rootless(kNobodySpecial);
    bundle.drop_namespace("user");
    bundle.config["linux"].erase("uidMappings");
    bundle.config["linux"].erase("gidMappings");
    const Outcome outcome = run(bundle, as_user());
    CHECK(outcome.status == 1);
    CHECK(outcome.says("user"));
}

TEST_CASE("id maps: a normal user's ranges are mapped by newuidmap") {
    NEEDS_ROOT();
    if (!newuidmap_is_here()) SKIP_TEST("no newuidmap on this machine");
    Bundle bundle;
    bundle.make_rootless(kNobodySpecial);
    const SubordinateIds ids(bundle);
    const json map = json::array({entry(0, kNobodySpecial, 1), entry(1, 200000, 65536)});
    bundle.config["linux"]["uidMappings"] = map;
    bundle.config["linux"]["gidMappings"] = map;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}, {"additionalGids", {4}}};
    const json report = report_of(bundle, as_user());
    CHECK(squeezed(report["proc"]["uid_map"]) == "0 65000 1 1 200000 65536");
    CHECK(squeezed(report["proc"]["gid_map"]) == "0 65000 1 1 200000 65536");
    CHECK(report["credentials"]["uid"] == json({1000, 1000, 1000, 1000}));
    CHECK(report["credentials"]["groups"] == json({4}));
}

TEST_CASE("id maps: a normal user's container with ranges can be entered while it waits for its start") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!newuidmap_is_here()) SKIP_TEST("no newuidmap on this machine");
    Bundle bundle;
    bundle.make_rootless(kNobodySpecial);
    const SubordinateIds ids(bundle);
    const json map = json::array({entry(0, kNobodySpecial, 1), entry(1, 200000, 65536)});
    bundle.config["linux"]["uidMappings"] = map;
    bundle.config["linux"]["gidMappings"] = map;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    const Container container(waiting(bundle), Container::As::created, as_user());
    const Ended ended = container.exec({}, {"/probe", "exit", "7"}, as_user().spawn);
    CHECK_MESSAGE(ended.status == 7, ended.err);
    container.must({"start", bundle.id()});
    CHECK(container.status() == "running");
}

TEST_CASE("id maps: ids that are not the user's are refused") {
    NEEDS_ROOT();
    if (!newuidmap_is_here()) SKIP_TEST("no newuidmap on this machine");
    Bundle bundle;
    bundle.make_rootless(kNobodySpecial);
    const SubordinateIds ids(bundle);
    bundle.config["linux"]["uidMappings"] = json::array({entry(0, kNobodySpecial, 1), entry(1, 500000, 10)});
    const Outcome outcome = run(bundle, as_user());
    CHECK(outcome.status == 1);
    if (runtime() == Runtime::pinfold) CHECK((outcome.says("newuidmap") || outcome.says("/etc/subuid")));
}
