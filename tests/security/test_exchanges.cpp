// Places that change between a look and a mount: another container, or the host, exchanges names in a shared directory.
#include <sys/stat.h>

#include "attacks.hpp"

namespace pinfold::integration {

namespace {

// A volume in which "one" is now a directory, now a link out of it.
struct Volume {
    Volume(Bundle& bundle, const std::string& link) : path(bundle.host() / "volume") {
        fs::create_directories(path / "one");
        plant(path / "other", link);
        bundle.bind(path, "/volume");
    }
    fs::path path;
};

// One start while names change: in its own root with nothing of the host in view, or refused.
bool is_confined(const Bundle& bundle, const Outcome& outcome) {
    if (outcome.status != 0) return is_refused(outcome, "mounts[");
    const json report = outcome.answer(0);
    const std::string root = report["mounts"][0]["root"];
    return mounts_only_own(report, bundle) && root.ends_with("/rootfs") && outcome.answer(1)["ok"] == false;
}

void check_race(const std::string& link, const std::vector<json>& mounts, int starts) {
    Bundle bundle;
    const Vault vault(bundle);
    const std::string target = link == "VAULT" ? vault.path().string() : link;
    INFO("a link to ", target);
    const Volume volume(bundle, target);
    write_text(bundle.host() / "file", "x");
    for (json mount : mounts) {
        if (mount["type"] == "bind") mount["source"] = (bundle.host() / "file").string();
        bundle.config["mounts"].push_back(mount);
    }
    bundle.probe_each({{"report"}, {"read", vault.secret()}});
    const std::string before = mount_table();
    const Exchanger exchanger(volume.path / "one", volume.path / "other");
    bool confined = true;
    for (Rounds rounds(starts); confined && rounds.go_on();) {
        const Outcome outcome = run(bundle);
        confined = is_confined(bundle, outcome);
        CHECK_MESSAGE(confined, outcome.err << outcome.out);
    }
    WITHSTANDS("a destination that is exchanged for a link", confined && mount_table() == before && vault.untouched());
}

json tmpfs_at(const std::string& destination) {
    return {{"destination", destination}, {"type", "tmpfs"}, {"source", "own"}, {"options", json::array()}};
}

json file_at(const std::string& destination) {
    return {{"destination", destination}, {"type", "bind"}, {"source", ""}, {"options", {"bind"}}};
}

}  // namespace

TEST_CASE("CVE-2021-30465: a mount's destination is exchanged for a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<json> mounts = {tmpfs_at("/volume/one"), tmpfs_at("/volume/one/below"),
                                      file_at("/volume/one/file")};
    for (const std::string link :
         {"VAULT", "/", "../../../../../../../..", "/proc/self/root", "/proc/1/root", "/proc/self/fd/3", "/made"}) {
        check_race(link, mounts, 25);
    }
}

TEST_CASE("CVE-2024-45310: directories and files are made while their parent is exchanged for a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<json> mounts = {tmpfs_at("/volume/one/new/deep/directory"), file_at("/volume/one/new/file"),
                                      file_at("/volume/one/file")};
    for (const std::string link : {"VAULT", "../../../../../../../..", "/made"}) check_race(link, mounts, 40);
}

TEST_CASE("CVE-2024-45310: a working directory is made while its parent is exchanged for a link") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Vault vault(bundle);
    const Volume volume(bundle, vault.path());
    bundle.config["process"]["cwd"] = "/volume/one/new/deep";
    bundle.probe({"report"});
    const Exchanger exchanger(volume.path / "one", volume.path / "other");
    for (Rounds rounds(100); rounds.go_on();) {
        const Outcome outcome = run(bundle);
        CHECK((outcome.status == 0 || is_refused(outcome, "cwd: ")));
        for (const char* name : {"one", "other"}) {
            if (fs::is_directory(fs::symlink_status(volume.path / name))) fs::remove_all(volume.path / name / "new");
        }
        fs::remove_all(bundle.rootfs() / "tmp");
    }
    WITHSTANDS("a working directory in a directory that is exchanged", vault.untouched());
}

TEST_CASE("tmpcopyup: a file that is exchanged for a pipe is not waited for") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const fs::path data = bundle.rootfs() / "data";
    write_text(data / "file", "x");
    REQUIRE(::mkfifo((data / "pipe").c_str(), 0600) == 0);
    bundle.mount("/data", "tmpfs", "tmpfs", {"tmpcopyup"}).probe_each({{"list", "/data"}});
    const Exchanger exchanger(data / "file", data / "pipe");
    bool copied = true;
    for (Rounds rounds(100); copied && rounds.go_on();) {
        const Outcome outcome = run(bundle);
        copied = outcome.status == 0 && outcome.answer()["names"] == json({"file", "pipe"});
        CHECK_MESSAGE(copied, outcome.err << outcome.out);
    }
    WITHSTANDS("a file that is exchanged for a pipe", copied);
}

}  // namespace pinfold::integration
