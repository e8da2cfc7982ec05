// What of this machine a sandbox is shown: by default, and by a recipe.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/strings.hpp"
#include "sandbox/host_root.hpp"
#include "sandbox/pasta.hpp"
#include "sandbox/template_root.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

const User kUser = {1000, 100, {}, {}};

const std::string* find_file(const HostRoot& root, const std::string& path) {
    for (const Skeleton::File& file : root.skeleton.files) {
        if (file.path == path) return &file.text;
    }
    return nullptr;
}

bool is_below(const std::string& path, const std::string& directory) {
    return path == directory || path.starts_with(directory + "/");
}

Result<HostRoot> plan_recipe(const TempDir& dir, const std::string& recipe) {
    std::ofstream(dir.file("recipe.json")) << recipe;
    return plan_template_root(dir.file("recipe.json"), Policies(1), kUser, Network::none);
}

std::string refusal(const std::string& recipe) {
    const TempDir dir;
    const Result<HostRoot> root = plan_recipe(dir, recipe);
    REQUIRE_FALSE(root);
    return root.error().message;
}

}  // namespace

TEST_CASE("host root: nothing that may hold a secret is shown, and nothing can be written to") {
    const HostRoot root = plan_host_root(kUser, Network::host);
    for (const Mount& mount : root.mounts) {
        CAPTURE(mount.destination);
        CHECK(mount.source == mount.destination);
        CHECK(std::ranges::find(mount.options, "rro") != mount.options.end());
        CHECK(std::ranges::find(mount.options, "rnosuid") != mount.options.end());
        for (const std::string hidden :
             {"/etc/shadow", "/etc/passwd", "/etc/ssl/private", "/etc/hosts", "/etc/apt", "/etc/ssh", "/etc/pinfold",
              "/root", "/home", "/var", "/run", "/srv", "/opt", "/boot", "/sys"}) {
            CAPTURE(hidden);
            CHECK_FALSE(is_below(hidden, mount.source));
            CHECK_FALSE(is_below(mount.source, hidden));
        }
    }
    for (const Skeleton::File& file : root.skeleton.files) CHECK(is_below(file.path, "etc"));
}

TEST_CASE("host root: the user inside has a name, root has no second one, and names are known with a network only") {
    const HostRoot named = plan_host_root(kUser, Network::none);
    REQUIRE(find_file(named, "etc/passwd"));
    CHECK(find_file(named, "etc/passwd")->find("\nsandbox:x:1000:100:") != std::string::npos);
    CHECK(find_file(named, "etc/group")->find("\nsandbox:x:100:") != std::string::npos);
    CHECK_FALSE(find_file(named, "etc/resolv.conf"));
    const HostRoot as_root = plan_host_root({}, Network::host);
    CHECK(find_file(as_root, "etc/passwd")->find("sandbox") == std::string::npos);
    CHECK(find_file(as_root, "etc/group")->find("sandbox") == std::string::npos);
    REQUIRE(find_file(as_root, "etc/resolv.conf"));
    // A server on this machine's loopback would be the sandbox's own there.
    const HostRoot translated = plan_host_root(kUser, Network::pasta);
    for (const std::string_view line : split(*find_file(translated, "etc/resolv.conf"), '\n'))
        CHECK_FALSE(line.starts_with("nameserver 127."));
    CHECK(find_file(translated, "etc/resolv.conf")->find("nameserver ") != std::string::npos);
}

TEST_CASE("template root: patterns are expanded, links get their directories, and the caller's own files are held") {
    const TempDir dir;
    std::filesystem::create_directories(dir.file("lib/a-1"));
    std::filesystem::create_directories(dir.file("lib/a-2"));
    std::filesystem::create_directories(dir.file("lib/b"));
    const Result<HostRoot> root =
        plan_recipe(dir, concat(R"({"description": "d", "show": [")", dir.path(), R"(/lib/a-*", "/not/there"],
                        "links": {"usr/local/bin/x": "../y"}})"));
    REQUIRE_MESSAGE(root, root.error().message);
    std::vector<std::string> shown;
    for (const Mount& mount : root->mounts) shown.push_back(mount.destination);
    CHECK(shown == std::vector<std::string>{dir.file("lib/a-1"), dir.file("lib/a-2")});
    // By number: another file cannot be put there afterwards.
    REQUIRE(root->sources.size() == 2);
    CHECK(std::filesystem::read_symlink(root->mounts[1].source) == dir.file("lib/a-2"));
    const std::vector<std::string>& made = root->skeleton.directories;
    for (const std::string& wanted : {std::string("usr"), std::string("usr/local"), std::string("usr/local/bin"),
                                      dir.file("lib").substr(1), std::string("workspace")}) {
        CAPTURE(wanted);
        CHECK(std::ranges::count(made, wanted) == 1);
    }
    REQUIRE(root->skeleton.links.size() == 1);
    CHECK(find_file(*root, "etc/passwd"));
}

TEST_CASE("template root: what leads elsewhere, is unknown or forbidden is refused by name") {
    const auto names = [](const std::string& message, const char* words) {
        CHECK_MESSAGE(message.find(words) != std::string::npos, message);
    };
    names(refusal(R"({"description": "d", "show": ["usr"]})"), "show[0]");
    names(refusal(R"({"description": "d", "show": ["/bin", "/usr/../root"]})"), "show[1]");
    names(refusal(R"({"description": "d", "show": ["/usr//bin"]})"), "show[0]");
    names(refusal(R"({"description": "d", "show": ["/bin"], "links": {"../x": "y"}})"), "links[\"../x\"]");
    names(refusal(R"({"description": "d", "show": ["/bin"], "links": {"/x": "y"}})"), "links[\"/x\"]");
    names(refusal(R"({"description": "d", "show": ["/bin"], "hide": []})"), "hide: is unknown");
    names(refusal(R"({"show": ["/bin"]})"), "description");
    names(refusal(R"({"description": "d", "show": ["/not/there/*"]})"), "this machine has none of it");
    names(refusal(R"({"description": "d", "show": ["/etc/shadow"]})"), "/etc/shadow");
    const Result<HostRoot> unknown = plan_template_root("no-such-template", Policies(1), kUser, Network::none);
    REQUIRE_FALSE(unknown);
    names(unknown.error().message, "no-such-template");
}
