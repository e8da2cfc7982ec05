// Devices: the default nodes and links, configured ones, and the device rules.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "harness.hpp"

using namespace pinfold::integration;

namespace {

// A node that the root file system brings along: whether it opens is for the device rules alone to say.
// No driver stands behind these numbers, so that any error but EPERM means that the rules let it pass.
void node_in_root(const Bundle& bundle, const char* name, unsigned minor) {
    const fs::path path = bundle.rootfs() / "data" / name;
    REQUIRE(::mknod(path.c_str(), S_IFCHR | 0666, makedev(10, minor)) == 0);
}

}  // namespace

TEST_CASE("devices: the default nodes have their numbers, modes and owners") {
    NEEDS_ROOT();
    Bundle bundle;
    const json report = report_of(bundle);
    struct Node {
        std::string path;
        int major, minor;
    };
    for (const Node& node : {Node{"/dev/null", 1, 3}, Node{"/dev/zero", 1, 5}, Node{"/dev/full", 1, 7},
                             Node{"/dev/random", 1, 8}, Node{"/dev/urandom", 1, 9}, Node{"/dev/tty", 5, 0}}) {
        CAPTURE(node.path);
        const json device = device_at(report, node.path);
        REQUIRE(!device.is_null());
        CHECK(device["type"] == "char");
        CHECK(device["major"] == node.major);
        CHECK(device["minor"] == node.minor);
        CHECK(device["mode"] == "0666");
        CHECK(device["uid"] == 0);
        CHECK(device["gid"] == 0);
    }
}

TEST_CASE("devices: the default links") {
    NEEDS_ROOT();
    Bundle bundle;
    const json report = report_of(bundle);
    CHECK(device_at(report, "/dev/fd")["target"] == "/proc/self/fd");
    CHECK(device_at(report, "/dev/stdin")["target"] == "/proc/self/fd/0");
    CHECK(device_at(report, "/dev/stdout")["target"] == "/proc/self/fd/1");
    CHECK(device_at(report, "/dev/stderr")["target"] == "/proc/self/fd/2");
    const std::string ptmx = device_at(report, "/dev/ptmx").value("target", "");
    CHECK((ptmx == "pts/ptmx" || ptmx == "/dev/pts/ptmx"));
    CHECK(device_at(report, "/dev/console").is_null());  // only with a terminal
}

TEST_CASE("devices: the default nodes work whatever the rules deny") {
    NEEDS_ROOT();
    Bundle bundle;
    const Outcome outcome = run_probe(bundle, {{"open", "/dev/null", "rw"},
                                               {"open", "/dev/zero", "rw"},
                                               {"open", "/dev/full", "rw"},
                                               {"open", "/dev/random", "rw"},
                                               {"open", "/dev/urandom", "rw"},
                                               {"open", "/dev/ptmx", "rw"},
                                               {"write", "/dev/full", "x"}});
    for (size_t i = 0; i < 6; ++i) {
        CAPTURE(i);
        CHECK(outcome.answer(i)["ok"] == true);
    }
    CHECK(outcome.answer(6)["errno"] == "ENOSPC");
}

TEST_CASE("devices: configured nodes") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["linux"]["devices"] = json::array({
        {{"path", "/dev/one"},
         {"type", "c"},
         {"major", 10},
         {"minor", 229},
         {"fileMode", 0640},
         {"uid", 1},
         {"gid", 2}},
        {{"path", "/dev/two"}, {"type", "b"}, {"major", 7}, {"minor", 99}, {"fileMode", 0600}},
        {{"path", "/dev/pipe"}, {"type", "p"}, {"fileMode", 0622}},
        {{"path", "/dev/deep/below/node"}, {"type", "u"}, {"major", 1}, {"minor", 5}, {"fileMode", 0666}},
        {{"path", "/data/outside"}, {"type", "c"}, {"major", 1}, {"minor", 7}, {"fileMode", 0604}},
    });
    const Outcome outcome = run_probe(bundle, {{"stat", "/dev/one"},
                                               {"stat", "/dev/two"},
                                               {"stat", "/dev/pipe"},
                                               {"stat", "/dev/deep/below/node"},
                                               {"stat", "/data/outside"}});
    const json one = outcome.answer(0);
    CHECK(one["type"] == "char");
    CHECK(one["major"] == 10);
    CHECK(one["minor"] == 229);
    CHECK(one["mode"] == "0640");
    CHECK(one["uid"] == 1);
    CHECK(one["gid"] == 2);
    const json two = outcome.answer(1);
    CHECK(two["type"] == "block");
    CHECK(two["major"] == 7);
    CHECK(two["minor"] == 99);
    CHECK(outcome.answer(2)["type"] == "fifo");
    CHECK(outcome.answer(2)["mode"] == "0622");
    CHECK(outcome.answer(3)["type"] == "char");
    CHECK(outcome.answer(3)["minor"] == 5);
    CHECK(outcome.answer(4)["mode"] == "0604");
}

TEST_CASE("devices: another file in a node's place is an error, the right node is not") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    write_text(bundle.rootfs() / "data/taken", "x");
    bundle.config["linux"]["devices"] =
        json::array({{{"path", "/data/taken"}, {"type", "c"}, {"major", 1}, {"minor", 7}, {"fileMode", 0666}}});
    const Outcome outcome = run(bundle);
    CHECK(outcome.status == 1);
    CHECK(outcome.says("/data/taken"));
    CHECK(read_text(bundle.rootfs() / "data/taken") == "x");

    // The same node twice: the second finds what it wants.
    fs::remove(bundle.rootfs() / "data/taken");
    CHECK(run(bundle).status == 0);
    CHECK(run(bundle).status == 0);
}

TEST_CASE("devices: a configured node in the place of a default one wins") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["linux"]["devices"] = json::array({{{"path", "/dev/full"},
                                                      {"type", "c"},
                                                      {"major", 1},
                                                      {"minor", 7},
                                                      {"fileMode", 0600},
                                                      {"uid", 3},
                                                      {"gid", 4}}});
    const json full = device_at(report_of(bundle), "/dev/full");
    CHECK(full["mode"] == "0600");
    CHECK(full["uid"] == 3);
    CHECK(full["gid"] == 4);
}

TEST_CASE("devices: what no rule allows is denied, what one allows is not") {
    NEEDS_ROOT();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    node_in_root(bundle, "denied", 250);
    node_in_root(bundle, "allowed", 251);
    bundle.config["linux"]["resources"]["devices"] = json::array({
        {{"allow", false}, {"access", "rwm"}},
        {{"allow", true}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"access", "r"}},
    });
    const Outcome outcome = run_probe(bundle, {{"open", "/data/denied", "ro"},
                                               {"open", "/data/allowed", "ro"},
                                               {"open", "/data/allowed", "rw"},
                                               {"open", "/dev/null", "rw"}});
    CHECK(outcome.answer(0)["errno"] == "EPERM");
    CHECK(outcome.answer(1)["errno"] != "EPERM");
    CHECK(outcome.answer(2)["errno"] == "EPERM");
    CHECK(outcome.answer(3)["ok"] == true);
}

TEST_CASE("devices: a later rule overrides an earlier one") {
    NEEDS_ROOT();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    node_in_root(bundle, "denied", 250);
    node_in_root(bundle, "other", 251);
    bundle.config["linux"]["resources"]["devices"] = json::array({
        {{"allow", true}, {"access", "rwm"}},
        {{"allow", false}, {"type", "c"}, {"major", 10}, {"minor", 250}, {"access", "rwm"}},
    });
    const Outcome outcome = run_probe(bundle, {{"open", "/data/denied", "ro"}, {"open", "/data/other", "rw"}});
    CHECK(outcome.answer(0)["errno"] == "EPERM");
    CHECK(outcome.answer(1)["errno"] != "EPERM");
}

TEST_CASE("devices: a configured node may be opened as its rule says, and no further") {
    NEEDS_ROOT();
    if (cgroup2_mount().empty()) SKIP_TEST("no cgroup v2 on this machine");
    Bundle bundle;
    // What an engine sends for a device that is given for reading only.
    bundle.config["linux"]["devices"] =
        json::array({{{"path", "/dev/given"}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"fileMode", 0666}}});
    bundle.config["linux"]["resources"]["devices"] = json::array({
        {{"allow", false}, {"access", "rwm"}},
        {{"allow", true}, {"type", "c"}, {"major", 10}, {"minor", 251}, {"access", "r"}},
    });
    const Outcome outcome = run_probe(bundle, {{"open", "/dev/given", "ro"}, {"open", "/dev/given", "rw"}});
    CHECK(outcome.answer(0)["errno"] != "EPERM");
    CHECK(outcome.answer(1)["errno"] == "EPERM");
}
