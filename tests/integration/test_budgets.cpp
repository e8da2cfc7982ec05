// How many system calls a scenario may take: tests/bench/budgets has the numbers. Times are noisy, calls are not.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "sandbox.hpp"
#include "support/source_root.hpp"

namespace pinfold::integration {

namespace {

std::map<std::string, int> budgets() {
    std::ifstream file(testing::source_root() / "tests/bench/budgets");
    std::map<std::string, int> found;
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        int calls = 0;
        if (line[0] != '#' && words >> name >> calls) found[name] = calls;
    }
    return found;
}

// A verb under strace, which counts the calls of all its processes, to the end of the last.
class Counted {
public:
    Counted(const Bundle& bundle, const std::vector<std::string>& words, SpawnOptions spawn = {}) {
        static int number = 0;
        file_ = bundle.host() / ("calls-" + std::to_string(++number));
        int ends[2];
        REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
        tracer_ = UniqueFd(ends[0]);
        const UniqueFd kept_by_tracer(ends[1]);
        // -D: what is created outlives its creator, and strace with it; this does not wait for them.
        std::vector<std::string> line = {"/usr/bin/strace", "-D", "-f", "-c", "-o", file_};
        const std::vector<std::string> verb = bundle.verb(words);
        line.insert(line.end(), verb.begin(), verb.end());
        spawn.fds.emplace_back(9, kept_by_tracer.get());
        const Ended ended = run_program(line, spawn);
        REQUIRE_MESSAGE(ended.status == 0, ended.err);
    }

    // The number before the errors on the last line, where there are any: "100.00 0.01 3 1234 56 total".
    int calls() {
        REQUIRE(await_readable(tracer_.get()));
        std::ifstream file(file_);
        std::string last;
        for (std::string line; std::getline(file, line);) last = line;
        std::istringstream words(last);
        std::string percent, seconds, each;
        int calls = 0;
        words >> percent >> seconds >> each >> calls;
        REQUIRE_MESSAGE(!words.fail(), last);
        return calls;
    }

private:
    fs::path file_;
    UniqueFd tracer_;
};

using Calls = std::map<std::string, int>;

// Machines differ in their cgroups.
std::vector<std::string> without_cgroup(const std::vector<std::string>& words) {
    std::vector<std::string> line = {"--cgroup-manager", "disabled"};
    line.insert(line.end(), words.begin(), words.end());
    return line;
}

int calls_of(const Bundle& bundle, const std::vector<std::string>& words) {
    return Counted(bundle, without_cgroup(words)).calls();
}

Calls count_life_cycle(const Bundle& bundle) {
    Counted create(bundle, without_cgroup({"create", "--bundle", bundle.path(), bundle.id()}));
    Counted start(bundle, without_cgroup({"start", bundle.id()}));
    Calls calls = {{"create", create.calls()}, {"start", start.calls()}};  // to the end of what was started
    calls["delete"] = calls_of(bundle, {"delete", bundle.id()});
    return calls;
}

// A process may be interrupted, and then tries again: the least of three counts.
void check_budget(const std::function<Calls()>& count) {
    Calls least = count();
    for (int again = 0; again < 2; ++again) {
        for (const auto& [name, calls] : count()) least[name] = std::min(least[name], calls);
    }
    const std::map<std::string, int> all = budgets();
    for (const auto& one : least) {
        const std::string& name = one.first;
        const int calls = one.second;
        const auto budget = all.find(name);
        REQUIRE_MESSAGE(budget != all.end(), "tests/bench/budgets has no line for " << name);
        CHECK_MESSAGE(calls <= budget->second, name << " takes " << calls << " system calls, not " << budget->second);
        if (calls < budget->second)
            std::printf("%s takes only %d system calls: lower its budget\n", name.c_str(), calls);
    }
}

bool is_another_build() {
    const char* program = std::getenv("PINFOLD_BIN");
    return program != nullptr && std::string_view(program).find("/release/") == std::string_view::npos;
}

}  // namespace

#define NEEDS_COUNTING()                                           \
    NEEDS_ROOT();                                                  \
    PINFOLD_ONLY();                                                \
    if (!fs::exists("/usr/bin/strace")) SKIP_TEST("needs strace"); \
    if (is_another_build()) SKIP_TEST("the numbers are those of build/release")

TEST_CASE("budgets: the verbs of a container take no more system calls than they are allowed") {
    NEEDS_COUNTING();
    Bundle bundle;
    bundle.probe({"exit", "0"}).write_config();
    check_budget([&] { return Calls{{"run", calls_of(bundle, {"run", "--bundle", bundle.path(), bundle.id()})}}; });
    check_budget([&] { return count_life_cycle(bundle); });
    const Container container(waiting(bundle), Container::As::running);
    check_budget([&] { return Calls{{"exec", calls_of(bundle, {"exec", bundle.id(), "/probe", "exit", "0"})}}; });
}

TEST_CASE("budgets: a sandbox takes no more system calls than it is allowed") {
    NEEDS_COUNTING();
    Bundle bundle;
    const SpawnOptions user = normal_user(bundle);
    const std::vector<std::string> words = {"sandbox", "--", "true"};
    check_budget([&] { return Calls{{"sandbox", Counted(bundle, words, user).calls()}}; });
}

}  // namespace pinfold::integration
