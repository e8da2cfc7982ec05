// Sandboxes as the back end of an agent: it makes them, works in them for a while, and makes mistakes.
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "sandbox.hpp"

using namespace pinfold::integration;

namespace {

// As root and as a normal user, with a volume that is the caller's.
template <class Check>
void as_both_with_volume(const Check& check) {
    for (const bool rootless : {false, true}) {
        CAPTURE(rootless);
        Bundle bundle;
        fs::create_directory(bundle.host() / "volume");
        // Also where the kernel cannot map the ids of such a file system: tmpfs before Linux 6.3.
        fs::permissions(bundle.host() / "volume", fs::perms::all);
        check(bundle, rootless ? normal_user(bundle) : SpawnOptions{});
    }
}

std::string volume_of(const Bundle& bundle) { return bundle.host() / "volume"; }

// What a person is told: one sentence, and perhaps what to do.
void check_one_sentence(const Ended& ended, int status, const std::string& words) {
    CHECK_MESSAGE(ended.status == status, ended.err);
    CHECK_MESSAGE(ended.err.find(words) != std::string::npos, ended.err);
    CHECK_MESSAGE(ended.err.starts_with("pinfold: "), ended.err);
    const size_t end = ended.err.find('\n');
    const std::string rest = end == std::string::npos ? "" : ended.err.substr(end + 1);
    const bool is_hint = rest.starts_with("hint: ") && rest.find('\n') == rest.size() - 1;
    CHECK_MESSAGE((rest.empty() || is_hint), ended.err);
}

// Bytes that no file system stores as a hole.
std::string solid(size_t size) { return std::string(size, 'x'); }

}  // namespace

TEST_CASE("agent: files go in and out, by copies and by a volume, and a volume outlives its sandboxes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_volume([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path host = bundle.host(), volume = volume_of(bundle);
        fs::create_directories(host / "tree/deep");
        write_text(host / "tree/deep/file", "first\n");
        if (spawn.uid) REQUIRE(::chown((host / "tree").c_str(), *spawn.uid, *spawn.uid) == 0);
        const std::vector<std::string> options = {"--bind", volume.string() + ":/volume"};
        {
            const DetachedSandbox box(bundle, options, {}, spawn);
            CHECK(box.run({"cp", host / "tree", bundle.id() + ":/workspace/tree"}).status == 0);
            CHECK(box.exec({"--session", "a"}, {"cd tree/deep && echo second >> file && cp file /volume"}).status == 0);
            CHECK(box.exec({"--session", "a"}, {"cat file; pwd"}).out == "first\nsecond\n/workspace/tree/deep\n");
            CHECK(box.run({"cp", bundle.id() + ":/workspace/tree", host / "back"}).status == 0);
        }
        CHECK(read_text(host / "back/deep/file") == "first\nsecond\n");
        CHECK(read_text(host / "tree/deep/file") == "first\n");
        const DetachedSandbox next(bundle, options, {}, spawn);
        CHECK(next.exec({}, {"sh", "-c", "cat /volume/file; ls /workspace"}).out == "first\nsecond\n");
    });
}

TEST_CASE("agent: what is paused does nothing until it is resumed, and has lost nothing") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_volume([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path ticks = fs::path(volume_of(bundle)) / "ticks";
        const DetachedSandbox box(
            bundle, {"--bind", volume_of(bundle) + ":/volume"},
            {"sh", "-c", "while ! [ -e /volume/end ]; do echo x >> /volume/ticks; sleep 0.01; done; echo ended"},
            spawn);
        await_file(ticks);
        const Ended paused = box.run({"pause", bundle.id()});
        if (cgroups_named(bundle.id()).empty()) {
            check_one_sentence(paused, 1, "pause");
        } else {
            REQUIRE_MESSAGE(paused.status == 0, paused.err);
            CHECK(box.run({"list"}).out.find("paused") != std::string::npos);
            const auto size = fs::file_size(ticks);
            for (int i = 0; i < 10; ++i) box.run({"list"});  // each takes as long as one of its rounds
            CHECK(fs::file_size(ticks) == size);
            CHECK(box.run({"resume", bundle.id()}).status == 0);
            const auto start = std::chrono::steady_clock::now();
            while (fs::file_size(ticks) == size) {
                if (std::chrono::steady_clock::now() - start > patience()) FAIL("it does not go on");
            }
        }
        write_text(fs::path(volume_of(bundle)) / "end", "");
        CHECK(box.run({"wait", bundle.id()}).status == 0);
        CHECK(box.run({"logs", bundle.id()}).out == "ended\n");
    });
}

TEST_CASE("agent: ten at once are made, worked in, listed, stopped and removed, and none is another") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_volume([](const Bundle& bundle, const SpawnOptions& spawn) {
        constexpr int kCount = 10;
        const auto name = [&](int number) { return bundle.id() + "-" + std::to_string(number); };
        // For all of them at the same time; what each has printed.
        const auto for_each = [&](const auto& words_of) {
            std::vector<std::unique_ptr<Process>> all;
            for (int i = 0; i < kCount; ++i) all.push_back(std::make_unique<Process>(bundle.verb(words_of(i)), spawn));
            std::vector<std::string> outputs;
            for (const auto& one : all) {
                const Ended ended = one->finish();
                CHECK_MESSAGE(ended.status == 0, ended.err);
                outputs.push_back(ended.out);
            }
            return outputs;
        };
        using Words = std::vector<std::string>;
        const auto check_all = [&](const std::vector<std::string>& outputs, const std::string& before) {
            for (int i = 0; i < kCount; ++i) CHECK(outputs[size_t(i)] == before + name(i) + "\n");
        };
        const std::string bind = volume_of(bundle) + ":/volume";
        check_all(for_each([&](int i) -> Words {
                      return {"sandbox",  "-d",  "--name", name(i), "--bind", bind,
                              "--memory", "64m", "--",     "sh",    "-c",     "echo \"of $0\"; exec sleep 1000",
                              name(i)};
                  }),
                  "");
        for_each(
            [&](int i) -> Words { return {"exec", name(i), "sh", "-c", "echo $0 | tee f > /volume/$0", name(i)}; });
        check_all(for_each([&](int i) -> Words { return {"exec", name(i), "cat", "f"}; }), "");
        check_all(for_each([&](int i) -> Words { return {"logs", name(i)}; }), "of ");
        const json list = json::parse(run_program(bundle.verb({"list", "--format", "json"}), spawn).out);
        CHECK(list.size() == kCount);
        for (const json& one : list) CHECK(one["status"] == "running");
        for (int i = 0; i < kCount; ++i) CHECK(read_text(fs::path(volume_of(bundle)) / name(i)) == name(i) + "\n");
        for_each([&](int i) -> Words { return {"stop", "--time", "100ms", name(i)}; });
        const std::string pruned = run_program(bundle.verb({"prune"}), spawn).out;
        CHECK(std::count(pruned.begin(), pruned.end(), '\n') == kCount);
        for (int i = 0; i < kCount; ++i) CHECK(cgroups_named(name(i)).empty());
    });
}

TEST_CASE("agent: a source that is missing, a name in use: one sentence, and what was there is as it was") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_volume([](const Bundle& bundle, const SpawnOptions& spawn) {
        const DetachedSandbox box(bundle, {}, {}, spawn);
        REQUIRE(box.exec({}, {"sh", "-c", "echo kept > /workspace/f"}).status == 0);
        const std::string id = bundle.id(), missing = bundle.host() / "missing";
        const auto make = [&](const std::vector<std::string>& options) {
            std::vector<std::string> words = {"sandbox", "-d"};
            words.insert(words.end(), options.begin(), options.end());
            return box.run(words);
        };
        for (const char* option : {"--bind", "--ro-bind", "--copy-in"}) {
            CAPTURE(std::string(option));
            const Ended ended = make({"--name", id + "-2", option, missing + ":/workspace/x"});
            check_one_sentence(ended, 125, option + (" '" + missing + "': "));
            CHECK(ended.out == "");
        }
        check_one_sentence(make({"--name", id}), 125, "'" + id + "' already exists");
        check_one_sentence(box.run({"cp", missing, id + ":/workspace/f"}), 1, missing + ": does not exist");
        check_one_sentence(box.run({"cp", id + ":/workspace/missing", bundle.host() / "out"}), 1, "missing");
        CHECK(!fs::exists(bundle.host() / "out"));
        CHECK(box.run({"list", "-q"}).out == id + "\n");
        CHECK(box.exec({}, {"sh", "-c", "cat f; ls"}).out == "kept\nf\n");
    });
}

TEST_CASE("agent: on a full disk, inside or outside, a copy fails whole, and what was there is as it was") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_volume([](const Bundle& bundle, const SpawnOptions& spawn) {
        const fs::path host = bundle.host(), large = host / "large";
        write_text(large, solid(4 << 20));
        const DetachedSandbox box(bundle, {"--disk", "4m"}, {}, spawn);
        const std::string inside = bundle.id() + ":/workspace/";
        REQUIRE(box.exec({}, {"sh", "-c", "echo kept > f"}).status == 0);
        for (const char* name : {"f", "new"})
            check_one_sentence(box.run({"cp", large, inside + name}), 1, "no space left on device");
        CHECK(box.exec({}, {"sh", "-c", "cat f; ls -A"}).out == "kept\nf\n");
        const Ended written = box.exec({}, {"sh", "-c", "yes > g; rm g; echo more >> f; cat f"});
        CHECK(written.err.find("No space left on device") != std::string::npos);
        CHECK(written.out == "kept\nmore\n");

        fs::create_directory(host / "small");
        const MountGuard disk("none", host / "small", "tmpfs", 0);
        REQUIRE(::mount(nullptr, (host / "small").c_str(), nullptr, MS_REMOUNT, "size=64k") == 0);
        REQUIRE(::chmod((host / "small").c_str(), 0777) == 0);
        write_text(host / "small/f", "kept\n");
        if (spawn.uid) REQUIRE(::chown((host / "small/f").c_str(), *spawn.uid, *spawn.uid) == 0);
        REQUIRE(box.exec({}, {"sh", "-c", "yes | head -c 1000000 > g"}).status == 0);
        for (const char* name : {"f", "new"})
            check_one_sentence(box.run({"cp", inside + "g", host / "small" / name}), 1, "no space left on device");
        CHECK(read_text(host / "small/f") == "kept\n");
        CHECK(!fs::exists(host / "small/new"));
        CHECK(std::distance(fs::directory_iterator(host / "small"), {}) == 1);
    });
}

TEST_CASE("agent: of a sandbox that has died it is told so, its volume is whole, and its name is free again") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    as_both_with_volume([](const Bundle& bundle, const SpawnOptions& spawn) {
        const std::vector<std::string> options = {"--bind", volume_of(bundle) + ":/volume"};
        const std::string id = bundle.id();
        const DetachedSandbox box(bundle, options, {}, spawn);
        REQUIRE(box.exec({"--session", "a"}, {"cd /volume && echo kept > f"}).status == 0);
        Process busy(bundle.verb({"exec", "--session", "a", id, "echo in; sleep 1000"}), spawn);
        CHECK(busy.read_line() == "in");
        const int pid = json::parse(box.run({"state", id}).out)["pid"];
        REQUIRE(::kill(pid, SIGKILL) == 0);
        CHECK(busy.finish().status == 128 + SIGKILL);
        box.await_end();
        check_one_sentence(box.exec({"--session", "a"}, {"pwd"}), 255, "'" + id + "' is stopped");
        check_one_sentence(box.run({"cp", id + ":/volume/f", "-"}), 1, "'" + id + "' is stopped");
        CHECK(read_text(fs::path(volume_of(bundle)) / "f") == "kept\n");
        CHECK(box.run({"prune"}).out == id + "\n");
        const DetachedSandbox next(bundle, options, {}, spawn);
        CHECK(next.exec({"--session", "a"}, {"pwd; cat /volume/f"}).out == "/workspace\nkept\n");
    });
}
