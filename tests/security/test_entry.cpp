// Whoever comes into a container, seen by those who live there: nothing of the host's may come along. A process inside
// looks at each that shows up, again and again, with all the rights that it has; many come in meanwhile.
#include <unistd.h>

#include <functional>

#include "attacks.hpp"
#include "cp.hpp"
#include "terminal.hpp"

namespace pinfold::integration {

namespace {

using As = Container::As;
using Enter = std::function<Ended(const Container&)>;

constexpr const char* kWord = "PINFOLD_HOST_WORD";

// What a caller has in its environment is its own.
SpawnOptions caller(SpawnOptions spawn = {}) {
    spawn.env.push_back(std::string(kWord) + "=kept");
    return spawn;
}

void may_trace(Bundle& bundle) {
    for (const char* set : {"bounding", "effective", "permitted"})
        bundle.config["process"]["capabilities"][set] = {"CAP_SYS_PTRACE", "CAP_KILL", "CAP_DAC_READ_SEARCH"};
}

// Two hundred of them, seen at least once.
json seen_from_inside(Bundle& bundle, const RunOptions& options, const Enter& enter) {
    const Vault vault(bundle);
    bundle.probe({"reach", vault.secret(), kWord});
    const Container container(bundle, As::running, options);
    CHECK(await_file(bundle.host() / "output").starts_with("READY"));
    for (Rounds rounds(200); rounds.go_on();) {
        const Ended ended = enter(container);
        CHECK_MESSAGE(ended.status == 0, ended.err);
    }
    CHECK(vault.untouched());
    container.must({"kill", bundle.id(), "TERM"});
    container.await_end();
    const std::string output = read_text(bundle.host() / "output");
    return json::parse(output.substr(output.find('{')));
}

void check_unseen(const std::string& what, const json& answer) {
    WITHSTANDS(what + ": " + answer.dump(), answer["reached"] == json::array());
}

Enter exec_of(std::vector<std::string> options) {
    return [options](const Container& container) { return container.exec(options, {"/probe", "exit", "0"}, caller()); };
}

}  // namespace

TEST_CASE("entry: exec brings nothing of the host's in, as a container sees that may trace all of its processes") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::vector<std::vector<std::string>> ways = {
        {}, {"--user", "1000:1000"}, {"--strict"}, {"--timeout", "60s"}, {"--cwd", "/tmp", "--env", "A=B"}};
    for (const auto& options : ways) {
        Bundle bundle;
        may_trace(bundle);
        const json answer = seen_from_inside(bundle, {}, exec_of(options));
        CHECK(answer["met"] > 0);
        check_unseen("exec " + json(options).dump(), answer);
    }
}

TEST_CASE("entry: exec with a terminal brings nothing of the host's in") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    const DescriptorSocket socket(bundle.host() / "console");
    const json answer = seen_from_inside(bundle, {}, [&](const Container& container) {
        const Ended ended =
            container.exec({"--tty", "--console-socket", socket.path()}, {"/probe", "exit", "0"}, caller());
        CHECK(socket.receive());
        return ended;
    });
    CHECK(answer["met"] > 0);
    check_unseen("exec --tty", answer);
}

TEST_CASE("entry: exec brings nothing of the host's in, as root of a user namespace sees it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool rootless : {false, true}) {
        INFO(std::string(rootless ? "a normal user's" : "root's"));
        Bundle bundle;
        may_trace(bundle);
        RunOptions options;
        if (rootless) {
            bundle.make_rootless(kNobodySpecial);
            options.spawn.uid = kNobodySpecial;
        } else {
            map_ids(bundle);
        }
        const json answer = seen_from_inside(bundle, options, [&](const Container& container) {
            return container.exec({}, {"/probe", "exit", "0"}, caller(options.spawn));
        });
        CHECK(answer["met"] > 0);
        check_unseen(rootless ? "exec, rootless" : "exec, user namespace", answer);
    }
}

TEST_CASE("entry: cp is not seen inside at all") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    may_trace(bundle);
    bundle.mount("/data", "tmpfs", "tmpfs", {"mode=777"});
    write_text(bundle.host() / "file", "text");
    const json answer = seen_from_inside(bundle, {}, [&](const Container&) {
        const Ended in = cp(bundle, {bundle.host() / "file", inside(bundle, "/data/file")}, caller());
        return in.status != 0 ? in : cp(bundle, {inside(bundle, "/data/file"), bundle.host() / "back"}, caller());
    });
    WITHSTANDS("cp: " + answer.dump(), answer["met"] == 0 && answer["reached"] == json::array());
}

}  // namespace pinfold::integration
