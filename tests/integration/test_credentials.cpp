// Users, groups, umask, the five capability sets, no_new_privs: what the payload is when it starts.
#include "harness.hpp"

using namespace pinfold::integration;

namespace {

constexpr int kSysResource = 24;

void capabilities(Bundle& bundle, const json& bounding, const json& others, const json& ambient) {
    bundle.config["process"]["capabilities"] = {{"bounding", bounding},
                                                {"permitted", others},
                                                {"effective", others},
                                                {"inheritable", ambient},
                                                {"ambient", ambient}};
}

}  // namespace

TEST_CASE("credentials: user, group and additional groups") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1001}, {"additionalGids", {5, 10, 4000000}}};
    const json ids = report_of(bundle)["credentials"];
    CHECK(ids["uid"] == json({1000, 1000, 1000, 1000}));
    CHECK(ids["gid"] == json({1001, 1001, 1001, 1001}));
    CHECK(ids["groups"] == json({5, 10, 4000000}));
}

TEST_CASE("credentials: no groups of the caller are left") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    CHECK(report_of(bundle)["credentials"]["groups"] == json::array());
}

TEST_CASE("credentials: umask") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["user"]["umask"] = 077;
    CHECK(report_of(bundle)["umask"] == "0077");
    // Unset: 0022, whatever the caller has.
    bundle.config["process"]["user"].erase("umask");
    CHECK(report_of(bundle, {.spawn = {.umask = 0027}})["umask"] == "0022");
}

TEST_CASE("credentials: the standard streams belong to the user") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    const Outcome outcome = run_probe(bundle, {{"open", "/dev/stdout", "wo"}, {"open", "/dev/stderr", "wo"}});
    CHECK(outcome.answer(0)["ok"] == true);
    CHECK(outcome.answer(1)["ok"] == true);
}

TEST_CASE("capabilities: root has those of the bounding set") {
    NEEDS_ROOT();
    Bundle bundle;
    const json all = {"CAP_CHOWN", "CAP_KILL", "CAP_NET_RAW"};
    capabilities(bundle, all, all, json::array());
    const json sets = report_of(bundle)["capabilities"];
    CHECK(sets["bounding"] == all);
    CHECK(sets["permitted"] == all);
    CHECK(sets["effective"] == all);
    CHECK(sets["inheritable"] == json::array());
    CHECK(sets["ambient"] == json::array());
}

TEST_CASE("capabilities: another user keeps the ambient ones alone") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    const json all = {"CAP_CHOWN", "CAP_KILL", "CAP_NET_RAW"};
    capabilities(bundle, all, all, {"CAP_KILL"});
    json sets = report_of(bundle)["capabilities"];
    CHECK(sets["bounding"] == all);
    CHECK(sets["permitted"] == json({"CAP_KILL"}));
    CHECK(sets["effective"] == json({"CAP_KILL"}));
    CHECK(sets["inheritable"] == json({"CAP_KILL"}));
    CHECK(sets["ambient"] == json({"CAP_KILL"}));

    capabilities(bundle, all, all, json::array());
    sets = report_of(bundle)["capabilities"];
    CHECK(sets["bounding"] == all);
    CHECK(sets["permitted"] == json::array());
    CHECK(sets["effective"] == json::array());
}

TEST_CASE("capabilities: an inheritable one alone gives nothing") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["user"] = {{"uid", 1000}, {"gid", 1000}};
    const json all = {"CAP_CHOWN", "CAP_KILL"};
    capabilities(bundle, all, all, json::array());
    bundle.config["process"]["capabilities"]["inheritable"] = {"CAP_CHOWN"};
    const json sets = report_of(bundle)["capabilities"];
    CHECK(sets["inheritable"] == json({"CAP_CHOWN"}));
    CHECK(sets["permitted"] == json::array());
}

TEST_CASE("capabilities: none at all when the config names none") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["capabilities"] = json::object();
    const json sets = report_of(bundle)["capabilities"];
    for (const std::string& set :
         std::vector<std::string>{"bounding", "permitted", "effective", "inheritable", "ambient"}) {
        CAPTURE(set);
        CHECK(sets[set] == json::array());
    }
}

TEST_CASE("capabilities: an unknown name is warned about, the others are set") {
    NEEDS_ROOT();
    Bundle bundle;
    capabilities(bundle, {"CAP_KILL", "CAP_FUTURE_THING"}, {"CAP_KILL", "CAP_FUTURE_THING"}, json::array());
    const Outcome outcome = run_probe(bundle, {{"report"}});
    CHECK(outcome.status == 0);
    CHECK(outcome.says("CAP_FUTURE_THING"));
    CHECK(outcome.answer()["capabilities"]["effective"] == json({"CAP_KILL"}));
}

TEST_CASE("capabilities: what the host itself lacks is warned about") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    capabilities(bundle, {"CAP_KILL", "CAP_SYS_RESOURCE"}, {"CAP_KILL", "CAP_SYS_RESOURCE"}, json::array());
    const Outcome outcome = run_probe(bundle, {{"report"}});
    CHECK(outcome.status == 0);
    CHECK(has(outcome.answer()["capabilities"]["effective"], "CAP_SYS_RESOURCE") == has_capability(kSysResource));
    CHECK(outcome.says("CAP_SYS_RESOURCE") != has_capability(kSysResource));
}

TEST_CASE("no_new_privs: as configured") {
    NEEDS_ROOT();
    Bundle bundle;
    bundle.config["process"]["noNewPrivileges"] = true;
    CHECK(report_of(bundle)["no_new_privs"] == 1);
    bundle.config["process"]["noNewPrivileges"] = false;
    CHECK(report_of(bundle)["no_new_privs"] == 0);
}
