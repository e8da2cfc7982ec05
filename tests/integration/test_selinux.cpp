// SELinux labels, on a kernel that was booted with tests/vm/selinux.cil as its policy.
#include "harness.hpp"

using namespace pinfold::integration;

namespace {

constexpr const char* kJail = "system_u:system_r:jail_t";
constexpr const char* kContent = "system_u:object_r:content_t";

std::string label_of(const json& report) {
    const std::string text = report["proc"]["attr/current"];
    return text.substr(0, text.find('\0'));  // which the kernel counts as part of it
}

}  // namespace

TEST_CASE("selinux: the payload has its label, with and without new privileges") {
    for (const bool no_new_privileges : {false, true}) {
        CAPTURE(no_new_privileges);
        Bundle bundle;
        bundle.config["process"]["selinuxLabel"] = kJail;
        bundle.config["process"]["noNewPrivileges"] = no_new_privileges;
        CHECK(label_of(report_of(bundle)) == kJail);
    }
}

TEST_CASE("selinux: exec has the container's label, or another") {
    Bundle bundle;
    bundle.config["process"]["selinuxLabel"] = kJail;
    const Container container(bundle.probe({"wait-signal"}), Container::As::running);
    CHECK(label_of(container.exec_report()) == kJail);
    CHECK(label_of(container.exec_report({"--process-label", "system_u:system_r:system_t"})) ==
          "system_u:system_r:system_t");
}

TEST_CASE("selinux: file systems made for the container have the label of its mounts") {
    Bundle bundle;
    bundle.config["linux"]["mountLabel"] = kContent;
    bundle.config["linux"]["maskedPaths"] = json::array({"/etc"});
    bundle.config["mounts"].push_back({{"destination", "/labelled"}, {"type", "tmpfs"}, {"source", "tmpfs"}});
    const Outcome outcome = run_probe(bundle, {{"create", "/labelled/file", "0644"},
                                               {"label", "/labelled/file"},
                                               {"label", "/dev/pts"},
                                               {"label", "/etc"},
                                               {"label", "/proc/self/status"}});
    CHECK(outcome.answer(1)["text"] == kContent);
    CHECK(outcome.answer(2)["text"] == kContent);
    CHECK(outcome.answer(3)["text"] == kContent);
    CHECK(outcome.answer(4)["text"] != kContent);
}

TEST_CASE("selinux: a label that the policy does not know is an error") {
    Bundle bundle;
    bundle.config["process"]["selinuxLabel"] = "system_u:system_r:nobody_knows_t";
    const Outcome outcome = run_probe(bundle, {{"report"}});
    CHECK(outcome.status == 1);
    CHECK(outcome.says("SELinux: label 'system_u:system_r:nobody_knows_t'"));
}
