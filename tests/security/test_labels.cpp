// Labels reach the kernel, or nothing starts.
#include "attacks.hpp"

namespace pinfold::integration {

TEST_CASE("CVE-2025-52881: a label goes to the kernel whatever the image has at /proc") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!read_text("/sys/module/apparmor/parameters/enabled").starts_with('Y'))
        SKIP_TEST("no AppArmor on this machine");
    Bundle bundle;
    const Vault vault(bundle);
    write_text(bundle.host() / "profile", "profile pinfold-security flags=(attach_disconnected) { file, signal, }\n");
    REQUIRE(run_program({"apparmor_parser", "--replace", bundle.host() / "profile"}).status == 0);
    bundle.drop_mount("/proc").mount("/real", "proc", "proc", {});
    bundle.config["linux"]["maskedPaths"] = json::array();
    bundle.config["linux"]["readonlyPaths"] = json::array();
    bundle.config["process"]["apparmorProfile"] = "pinfold-security";
    for (const char* process : {"self", "1", "thread-self"}) {
        fs::create_directories(bundle.rootfs() / "proc" / process / "attr/apparmor");
        plant(bundle.rootfs() / "proc" / process / "attr/exec", vault.secret());
        plant(bundle.rootfs() / "proc" / process / "attr/apparmor/exec", vault.secret());
    }
    fs::create_directories(bundle.rootfs() / vault.path().relative_path());
    bundle.bind(vault.path(), vault.path());
    const Outcome outcome = run_probe(bundle, {{"read", "/real/self/attr/current"}});
    WITHSTANDS("links in an image's /proc/self/attr",
               outcome.answer()["text"].get<std::string>().starts_with("pinfold-security (enforce)"));
    CHECK(vault.untouched());
    CHECK(run_program({"apparmor_parser", "--remove", bundle.host() / "profile"}).status == 0);
}

}  // namespace pinfold::integration
