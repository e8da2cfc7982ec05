// AppArmor profiles: of the container's payload, and of further programs; and SELinux where there is none.
#include "harness.hpp"

using namespace pinfold::integration;

namespace {

bool host_has_apparmor() {
    const fs::path enabled = "/sys/module/apparmor/parameters/enabled";
    return fs::exists(enabled) && read_text(enabled).starts_with("Y");
}

// A profile that is loaded for as long as the object lives: all is allowed but to write below /data.
class Profile {
public:
    explicit Profile(const Bundle& bundle) : name_("pinfold-" + bundle.id()), file_(bundle.host() / "profile") {
        write_text(file_, "profile " + name_ +
                              " flags=(attach_disconnected) {\n  file,\n  capability,\n  network,\n  signal,\n"
                              "  ptrace,\n  unix,\n  mount,\n  deny /data/** w,\n}\n");
        parser("--replace");
    }
    ~Profile() { parser("--remove"); }
    Profile(const Profile&) = delete;
    Profile& operator=(const Profile&) = delete;

    const std::string& name() const { return name_; }

private:
    void parser(const std::string& action) const {
        const Ended ended = run_program({"/usr/sbin/apparmor_parser", "--skip-cache", action, file_});
        REQUIRE_MESSAGE(ended.status == 0, ended.err);
    }

    std::string name_;
    fs::path file_;
};

}  // namespace

#define NEEDS_APPARMOR() \
    NEEDS_ROOT();        \
    if (!host_has_apparmor()) SKIP_TEST("this kernel runs without AppArmor")

TEST_CASE("apparmor: the payload is confined, with and without new privileges") {
    NEEDS_APPARMOR();
    for (const bool no_new_privileges : {false, true}) {
        CAPTURE(no_new_privileges);
        Bundle bundle;
        const Profile profile(bundle);
        bundle.config["process"]["apparmorProfile"] = profile.name();
        bundle.config["process"]["noNewPrivileges"] = no_new_privileges;
        const Outcome outcome =
            run_probe(bundle, {{"report"}, {"create", "/data/new", "0644"}, {"create", "/tmp/new", "0644"}});
        CHECK(outcome.answer(0)["proc"]["attr/current"] == profile.name() + " (enforce)\n");
        CHECK(outcome.answer(1)["ok"] == false);
        CHECK(outcome.answer(2)["ok"] == true);
    }
}

TEST_CASE("apparmor: exec has the container's profile, or another") {
    NEEDS_APPARMOR();
    PINFOLD_ONLY();
    Bundle bundle;
    const Profile profile(bundle);
    bundle.config["process"]["apparmorProfile"] = profile.name();
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    CHECK(container.exec_report()["proc"]["attr/current"] == profile.name() + " (enforce)\n");
    CHECK(container.exec_report({"--apparmor", "unconfined"})["proc"]["attr/current"] == "unconfined\n");
}

TEST_CASE("apparmor: a profile that is not loaded is an error") {
    NEEDS_APPARMOR();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["apparmorProfile"] = "pinfold-never-loaded";
    const Outcome outcome = run_probe(bundle, {{"report"}});
    CHECK(outcome.status == 1);
    CHECK(outcome.says("AppArmor: profile 'pinfold-never-loaded'"));
    CHECK(outcome.says("hint: is the profile loaded?"));
}

TEST_CASE("apparmor: a host without it refuses a profile, and takes unconfined") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.config["process"]["apparmorProfile"] = "unconfined";
    CHECK(run_probe(bundle, {{"report"}}).status == 0);
    if (host_has_apparmor()) return;
    bundle.config["process"]["apparmorProfile"] = "some-profile";
    const Outcome outcome = run_probe(bundle, {{"report"}});
    CHECK(outcome.status == 1);
    CHECK(outcome.says("this host has no AppArmor"));
}

TEST_CASE("selinux: a host without it refuses labels before anything is made") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::pair<std::string, std::string>> table = {{"/process/selinuxLabel", "process.selinuxLabel"},
                                                                    {"/linux/mountLabel", "linux.mountLabel"}};
    for (const auto& entry : table) {
        CAPTURE(entry.first);
        Bundle bundle;
        bundle.config[json::json_pointer(entry.first)] = "system_u:system_r:container_t";
        const Outcome outcome = run_probe(bundle, {{"report"}});
        CHECK(outcome.status == 1);
        CHECK(outcome.says(entry.second + ": this host does not run SELinux"));
        CHECK(run_program(bundle.verb({"state", bundle.id()}), {}).status == 1);
    }
}
