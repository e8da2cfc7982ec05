// From a bundle on disk to a configuration: files, directories and the whole error.
#include "spec/parse.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using testing::TempDir;

namespace {

constexpr std::string_view kGood =
    R"({"ociVersion": "1.0.2", "root": {"path": "rootfs"}, "process": {"cwd": "/", "args": ["sh"]}})";

class Bundle {
public:
    explicit Bundle(std::string_view config) {
        std::ofstream(config_path()) << config;
        std::filesystem::create_directory(dir_.file("rootfs"));
    }
    std::string path() const { return dir_.path(); }
    std::string config_path() const { return dir_.file("config.json"); }
    Result<Spec> load() const {
        const std::string text = TRY(read_config(config_path()));
        return parse_config(text, config_path(), path());
    }

private:
    TempDir dir_;
};

}  // namespace

TEST_CASE("load: a good bundle") {
    const Bundle bundle(kGood);
    const Result<Spec> spec = bundle.load();
    REQUIRE_MESSAGE(spec, spec.error().message);
    CHECK(spec->root.path == "rootfs");
    CHECK(spec->process->args == std::vector<std::string>{"sh"});
}

TEST_CASE("load: a missing file is told with the remedy") {
    const TempDir dir;
    const Result<std::string> spec = read_config(dir.file("config.json"));
    REQUIRE_FALSE(spec);
    CHECK(spec.error().message == concat("open ", dir.path(), "/config.json: does not exist (ENOENT)"));
    CHECK(spec.error().hint == "run in a bundle directory, or name one with --bundle");
}

TEST_CASE("load: a file that is no JSON is told with the place") {
    const Bundle bundle("{\n  \"ociVersion\": 1.0.2\n}");
    const Result<Spec> spec = bundle.load();
    REQUIRE_FALSE(spec);
    CHECK(spec.error().message.starts_with(concat(bundle.config_path(), ":2:20: ")));
}

TEST_CASE("load: the root must be a directory, relative to the bundle") {
    const Bundle bundle(kGood);
    const std::string rootfs = bundle.path() + "/rootfs";
    std::filesystem::remove(rootfs);
    Result<Spec> spec = bundle.load();
    REQUIRE_FALSE(spec);
    CHECK(spec.error().message == concat(bundle.config_path(), ": root.path: ", rootfs, ": does not exist (ENOENT)"));

    std::ofstream(rootfs) << "a file";
    spec = bundle.load();
    REQUIRE_FALSE(spec);
    CHECK(spec.error().message == concat(bundle.config_path(), ": root.path: ", rootfs, ": not a directory"));
}

TEST_CASE("load: the root may be an absolute path") {
    const Bundle bundle(
        R"({"ociVersion": "1.0.2", "root": {"path": "/usr"}, "process": {"cwd": "/", "args": ["sh"]}})");
    CHECK(bundle.load());
}

TEST_CASE("load: all that is wrong is told at once") {
    const Bundle bundle(R"({"ociVersion": "1.0.2", "root": {"path": "elsewhere"}, "hostname": "x",
        "process": {"cwd": "/", "args": "sh"}, "linux": {"intelRdt": {"closID": "c"}}})");
    const Result<Spec> spec = bundle.load();
    REQUIRE_FALSE(spec);
    CHECK(spec.error().message == concat(bundle.config_path(), ": 4 problems\n",
                                         "  process.args: found \"sh\", allowed: an array\n",
                                         "  hostname: needs a uts namespace: it would rename the host\n",
                                         "  root.path: ", bundle.path(), "/elsewhere: does not exist (ENOENT)\n",
                                         "  linux.intelRdt: not supported yet: classes of service are not assigned"));
    CHECK(spec.error().hint.empty());
}
