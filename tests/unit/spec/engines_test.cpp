// Configurations that real engines wrote, and the examples of the specification: what is said of each, exactly.
#include <glob.h>

#include <map>
#include <string>
#include <vector>

#include "documents.hpp"
#include "json/json.hpp"
#include "spec/parse.hpp"
#include "spec/resources.hpp"
#include "spec/validate.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

using Lines = std::vector<std::string>;

Lines unsupported_in(const Json& root, std::string_view at = {}) {
    Problems problems;
    refuse_unsupported(root, problems, at);
    return testing::lines(problems);
}

// The names of the files that match, without the folder.
Lines files(const std::string& folder, const std::string& pattern) {
    const std::string prefix = testing::source_root().string() + "/" + folder + "/";
    glob_t found{};
    REQUIRE(::glob((prefix + pattern).c_str(), 0, nullptr, &found) == 0);
    Lines names;
    for (size_t i = 0; i < found.gl_pathc; ++i) names.push_back(std::string(found.gl_pathv[i]).substr(prefix.size()));
    ::globfree(&found);
    return names;
}

}  // namespace

TEST_CASE("engines: their configurations are valid, and what is not done yet is named") {
    const std::map<std::string, Lines> expected = {
        {"buildah-run-v1.json", {}},
        {"buildkit-run.json", {}},
        {"cri-container-v2.json", {}},
        {"cri-sandbox-v2.json", {}},
        {"ctr-tty-v2.json", {}},
        {"ctr-v2.json", {}},
        {"docker-default-v2.json", {}},
        {"docker-limits-v2.json", {}},
        {"docker-privileged-v2.json", {}},
        {"docker-systemd-driver-v2.json", {}},
        {"docker-tty-v2.json", {}},
        {"podman-rootful-systemd-v2.json", {}},
        {"podman-rootful-tty-v2.json", {}},
        {"podman-rootful-userns-v1.json", {}},
        {"podman-rootful-v2.json", {}},
        {"podman-rootless-tty-v2.json", {}},
        {"podman-rootless-v2.json", {}},
        {"podman-systemd-mode-v1.json", {}},
    };
    Lines names = files("tests/data/configs", "*-v[12].json");
    names.push_back("buildkit-run.json");
    CHECK(names.size() == expected.size());
    for (const std::string& name : names) {
        CAPTURE(name);
        const Json config = testing::document("tests/data/configs/" + name);
        CHECK(testing::problems_of(config) == Lines{});
        REQUIRE(expected.contains(name));
        CHECK(unsupported_in(config) == expected.at(name));
    }
}

TEST_CASE("engines: the processes that they execute are valid") {
    const std::map<std::string, Lines> expected = {
        {"exec-process-ctr.json", {}},
        {"exec-process-docker.json", {}},
        {"exec-process-podman.json", {}},
    };
    for (const std::string& name : files("tests/data/configs", "exec-process-*.json")) {
        CAPTURE(name);
        const Json root = testing::document("tests/data/configs/" + name);
        Problems problems;
        const Process process = parse_process(root, problems);
        validate_process(process, "", problems);
        CHECK(testing::lines(problems) == Lines{});
        CHECK_FALSE(process.args.empty());
        CHECK(process.capabilities.has_value());
        REQUIRE(expected.contains(name));
        CHECK(unsupported_in(root, "process") == expected.at(name));
    }
}

TEST_CASE("engines: the resources that they update are valid, and their zeros ask for nothing") {
    for (const std::string& name : files("tests/data/configs", "update-*.json")) {
        CAPTURE(name);
        const Json root = testing::document("tests/data/configs/" + name);
        Problems problems;
        const Resources resources = parse_resources(root, problems);
        validate_resources(resources, "", problems);
        CHECK(testing::lines(problems) == Lines{});
        CHECK(resources.memory.limit == 134217728);
        CHECK(resources.cpu.quota == 25000);
    }
}

TEST_CASE("engines: problems of a document of its own have paths that begin there") {
    Problems problems;
    const Json process = testing::json(R"({"cwd": "x", "args": ["a"], "user": {"umask": 512}})");
    validate_process(parse_process(process, problems), "", problems);
    const Json resources = testing::json(R"({"memory": {"swappiness": 500}, "cpu": 1})");
    validate_resources(parse_resources(resources, problems), "", problems);
    CHECK(testing::lines(problems) ==
          Lines{R"(cwd: found "x", allowed: an absolute path)", "user.umask: found 512, allowed: 0 to 511",
                "cpu: found 1, allowed: an object", "memory.swappiness: found 500, allowed: 0 to 100"});
}

TEST_CASE("engines: a Docker configuration arrives whole in the typed form") {
    Problems problems;
    const Spec spec = parse_spec(testing::document("tests/data/configs/docker-limits-v2.json"), problems);
    REQUIRE(problems.empty());
    CHECK(spec.oci_version == "1.0.2-dev");
    CHECK(spec.hostname == "d1c0b434b62a");
    REQUIRE(spec.process);
    CHECK(spec.process->args[0] == "sh");
    CHECK(spec.process->env.size() == 2);
    CHECK(spec.process->user.additional_gids == std::vector<uint32_t>{0});
    CHECK(spec.process->capabilities->bounding.size() == 14);
    CHECK(spec.process->capabilities->ambient.empty());
    CHECK(spec.process->apparmor_profile == "docker-default");
    CHECK(spec.process->oom_score_adj == 0);
    CHECK_FALSE(spec.process->user.umask);
    REQUIRE(spec.mounts.size() == 10);
    CHECK(spec.mounts[7].destination == "/etc/resolv.conf");
    CHECK(spec.mounts[7].options == Lines{"rbind", "rprivate"});
    REQUIRE(spec.hooks.prestart.size() == 1);
    CHECK(spec.hooks.prestart[0].path == "/proc/166/exe");
    REQUIRE(spec.linux_.namespaces.size() == 6);
    CHECK(spec.linux_.namespaces[1].type == NamespaceType::network);
    const Resources& resources = spec.linux_.resources;
    CHECK(resources.memory.limit == 67108864);
    CHECK(resources.memory.swap == 134217728);
    CHECK_FALSE(resources.memory.reservation);
    CHECK(resources.cpu.shares == 0u);
    CHECK(resources.cpu.quota == 50000);
    CHECK(resources.pids_limit == 20);
    CHECK(resources.block_io.weight == 0);
    REQUIRE(resources.devices.size() == 8);
    CHECK_FALSE(resources.devices[0].allow);
    CHECK(resources.devices[0].type == 'a');
    CHECK(resources.devices[1].major == 1);
    CHECK(resources.devices[1].type == 'c');
    CHECK(spec.linux_.sysctl.at("net.ipv4.ip_unprivileged_port_start") == "0");
    REQUIRE(spec.linux_.seccomp);
    CHECK(spec.linux_.seccomp->default_action == "SCMP_ACT_ERRNO");
    CHECK(spec.linux_.seccomp->architectures.size() == 3);
    CHECK(spec.linux_.seccomp->syscalls.size() > 10);
    CHECK(spec.linux_.masked_paths.size() == 10);
}

TEST_CASE("engines: what a limit of 0 processes means depends on the version") {
    const auto limit = [](std::string_view version, std::string_view pids) {
        Problems problems;
        const Json config =
            testing::edited(testing::good_config(), {{"ociVersion", version}, {"linux.resources.pids", pids}});
        return parse_spec(config, problems).linux_.resources.pids_limit;
    };
    for (const char* old : {R"("1.0.0")", R"("1.0.2-dev")", R"("1.2.1+dev")", R"("1.2.99")", R"("1")", R"("")"}) {
        CAPTURE(old);
        CHECK(limit(old, R"({"limit": 0})") == -1);
        CHECK(limit(old, R"({"limit": 7})") == 7);
        CHECK_FALSE(limit(old, "{}"));
    }
    for (const char* newer : {R"("1.3.0")", R"("1.3.0-rc.1")", R"("1.10.0")"}) {
        CAPTURE(newer);
        CHECK(limit(newer, R"({"limit": 0})") == 0);
        CHECK(limit(newer, R"({"limit": -1})") == -1);
    }
}

TEST_CASE("engines: the specification's good examples") {
    const auto of = [](const std::string& name) {
        return testing::document("tests/data/oci-schema/examples/good/" + name);
    };
    const Lines no_process = {"process: missing, required: the process to run"};
    CHECK(testing::problems_of(of("minimal-for-start.json")) == Lines{});
    CHECK(testing::problems_of(of("minimal.json")) == no_process);
    CHECK(testing::problems_of(of("linux-netdevice.json")) ==
          Lines{no_process[0], "linux.netDevices: needs a network namespace in linux.namespaces"});
    CHECK(testing::problems_of(of("linux-rdma.json")) == no_process);
    // Written for a version before the first.
    CHECK(testing::problems_of(of("spec-example.json")) ==
          Lines{R"(ociVersion: found "0.5.0-dev", allowed: a semantic version 1.x.y)"});

    CHECK(unsupported_in(of("minimal-for-start.json")) == Lines{});
    CHECK(unsupported_in(of("linux-rdma.json")) == Lines{});
    Lines paths;
    for (const std::string& line : unsupported_in(of("spec-example.json"))) {
        paths.push_back(line.substr(0, line.find(':')));
    }
    CHECK(paths == Lines{});
}

TEST_CASE("engines: the specification's bad examples") {
    const auto of = [](const std::string& name) {
        Lines all = testing::problems_of(testing::document("tests/data/oci-schema/examples/bad/" + name));
        std::erase(all, "process: missing, required: the process to run");
        return all;
    };
    CHECK(of("linux-hugepage.json") == Lines{"linux.resources.hugepageLimits[0].pageSize: found \"64kB\", allowed: a "
                                             "number and KB, MB or GB"});
    CHECK(of("linux-netdevice.json") == Lines{"linux.netDevices.eth0.name: found 23, allowed: a string",
                                              "linux.netDevices: needs a network namespace in linux.namespaces"});
    CHECK(of("linux-rdma.json") == Lines{"linux.resources.rdma.mlx5_1.hcaHandles: found \"not a uint32\", allowed: a "
                                         "whole number from 0 to 4294967295"});
    const Result<Json> invalid = parse_json("{]\n", "invalid-json.json");
    CHECK_FALSE(invalid);
}
