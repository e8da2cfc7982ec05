// The root file system: read-only or not, its propagation, where its path may point.
#include <sys/mount.h>

#include "harness.hpp"

using namespace pinfold::integration;

TEST_CASE("root: writable unless readonly is set") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["root"]["readonly"] = false;
    CHECK(run_probe(bundle, {{"create", "/written", "x"}}).answer()["ok"] == true);
    CHECK(read_text(bundle.rootfs() / "written") == "x");

    bundle.config["root"]["readonly"] = true;
    const Outcome outcome = run_probe(bundle, {{"create", "/refused", "x"}, {"write", "/written", "y"}, {"report"}});
    CHECK(outcome.answer(0)["errno"] == "EROFS");
    CHECK(outcome.answer(1)["errno"] == "EROFS");
    CHECK(has(mount_at(outcome.answer(2), "/")["options"], "ro"));
    CHECK_FALSE(fs::exists(bundle.rootfs() / "refused"));
}

TEST_CASE("root: mounts below a readonly root stay writable") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["root"]["readonly"] = true;
    bundle.mount("/tmp", "tmpfs", "tmpfs", {"nosuid"});
    CHECK(run_probe(bundle, {{"create", "/tmp/file", "x"}}).answer()["ok"] == true);
}

TEST_CASE("root: an absolute path, and one that is missing") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["root"]["path"] = bundle.rootfs().string();
    CHECK(run_probe(bundle, {{"stat", "/probe"}}).answer()["ok"] == true);

    bundle.config["root"]["path"] = "nowhere";
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says("nowhere"));
}

TEST_CASE("root: the host's other files are out of reach") {
    NEEDS_ROOT();
    Bundle bundle;
    const Outcome outcome = run_probe(bundle, {{"list", "/"},
                                               {"stat", "/../../../../../.."},
                                               {"read", "/../../../../../../etc/passwd"},
                                               {"read", "/proc/1/root/etc/passwd"}});
    CHECK(outcome.answer(0)["names"] == json({"data", "dev", "etc", "probe", "proc", "sys", "tmp"}));
    CHECK(outcome.answer(2)["errno"] == "ENOENT");
    CHECK(outcome.answer(3)["errno"] == "ENOENT");
}

TEST_CASE("root: propagation is what rootfsPropagation says") {
    NEEDS_ROOT();
    Bundle bundle;
    // Something to propagate from: the bundle on a shared mount, as systemd's hosts have it everywhere.
    const MountGuard shared(bundle.path(), bundle.path(), nullptr, MS_BIND);
    shared.set_propagation(MS_SHARED);

    for (const std::string& value :
         std::vector<std::string>{"private", "rprivate", "slave", "rslave", "shared", "rshared"}) {
        CAPTURE(value);
        bundle.config["linux"]["rootfsPropagation"] = value;
        const json tags = mount_at(report_of(bundle), "/")["tags"];
        const std::string first = tags.empty() ? "" : tags[0].get<std::string>();
        const bool is_shared = first.rfind("shared:", 0) == 0;
        // A slave of nobody is a private mount to the kernel, so that `slave` promises only not to be shared.
        CHECK(is_shared == (value.find("shared") != std::string::npos));
        if (value.find("private") != std::string::npos) CHECK(first.empty());
    }
    bundle.config["linux"].erase("rootfsPropagation");
    const json unset = mount_at(report_of(bundle), "/")["tags"];
    CHECK((unset.empty() || unset[0].get<std::string>().rfind("master:", 0) == 0));
}

TEST_CASE("root: --no-pivot gives the same root by a moved mount") {
    NEEDS_ROOT();
    Bundle bundle;
    const Outcome outcome = run_probe(bundle, {{"list", "/"}, {"report"}}, {.args = {"--no-pivot"}});
    CHECK(outcome.answer(0)["names"] == json({"data", "dev", "etc", "probe", "proc", "sys", "tmp"}));
    CHECK(outcome.answer(1)["cwd"] == "/");
    CHECK(mount_at(outcome.answer(1), "/proc")["type"] == "proc");
}
