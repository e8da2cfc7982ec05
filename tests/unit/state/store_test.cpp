// State directories: claimed once, removed whole, and honest about who lives.
#include "state/store.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "json/json.hpp"
#include "support/sleeper.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::start_sleeper;
using pinfold::testing::TempDir;
namespace fs = std::filesystem;

namespace {

ContainerRecord record_of(const std::string& id) {
    ContainerRecord record;
    record.id = id;
    record.oci_version = "1.2.0";
    record.bundle = "/b/\"quoted\"";
    record.cgroup = {"/sys/fs/cgroup", "/pinfold/web", {{"memory", "/sys/fs/cgroup/memory"}}, "pinfold-web.scope"};
    record.annotations = {{"a", "1"}, {"b\n", "2"}};
    return record;
}

}  // namespace

TEST_CASE("state: an id can be claimed once, and is free again afterwards") {
    TempDir dir;
    const std::string root = dir.file("a/b");
    {
        const auto first = StateDir::create(root, record_of("web"), "{}");
        REQUIRE(first);
        const auto second = StateDir::create(root, record_of("web"), "{}");
        REQUIRE_FALSE(second);
        CHECK(second.error().message == "container 'web' already exists");
        CHECK_FALSE(second.error().hint.empty());
        CHECK(load_state(root, "web")->status == Status::creating);
    }
    CHECK(fs::is_empty(root));
    CHECK(StateDir::create(root, record_of("web"), "{}"));
}

TEST_CASE("state: what was recorded comes back") {
    TempDir dir;
    auto state = StateDir::create(dir.path(), record_of("web"), "{}");
    REQUIRE(state);
    state->commit();
    const auto loaded = load_state(dir.path(), "web");
    REQUIRE(loaded);
    CHECK(loaded->record.bundle == "/b/\"quoted\"");
    CHECK(loaded->record.cgroup.mount == "/sys/fs/cgroup");
    CHECK(loaded->record.cgroup.path == "/pinfold/web");
    CHECK(loaded->record.cgroup.v1 == StringMap{{"memory", "/sys/fs/cgroup/memory"}});
    CHECK(loaded->record.cgroup.scope == "pinfold-web.scope");
    CHECK(loaded->record.annotations == record_of("web").annotations);
    CHECK(parse_json(state_to_json(*loaded), "state"));
    CHECK(remove_state(dir.path(), "web"));
    CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("state: running while the process lives, stopped from its end on") {
    TempDir dir;
    const auto state = StateDir::create(dir.path(), record_of("web"), "{}");
    REQUIRE(state);
    const pid_t pid = start_sleeper();
    REQUIRE(state->record_init(pid));
    CHECK(load_state(dir.path(), "web")->status == Status::running);
    CHECK(load_state(dir.path(), "web")->pid == pid);
    ::kill(pid, SIGKILL);
    siginfo_t end{};
    ::waitid(P_PID, static_cast<id_t>(pid), &end, WEXITED | WNOWAIT);
    CHECK(load_state(dir.path(), "web")->status == Status::stopped);  // a zombie runs no more
    ::waitpid(pid, nullptr, 0);
    CHECK(load_state(dir.path(), "web")->status == Status::stopped);
    CHECK(load_state(dir.path(), "web")->pid == 0);
}

TEST_CASE("state: a pid that belongs to another process by now is not the container's") {
    TempDir dir;
    auto state = StateDir::create(dir.path(), record_of("web"), "{}");
    REQUIRE(state);
    state->commit();
    std::ofstream(dir.file("web/init")) << ::getpid() << " 1";
    CHECK(load_state(dir.path(), "web")->status == Status::stopped);
}

TEST_CASE("state: half-made, broken and foreign directories") {
    TempDir dir;
    CHECK(load_state(dir.path(), "none").error().message == "container 'none' does not exist");
    CHECK(load_state(dir.file("nowhere"), "none").error().message == "container 'none' does not exist");
    fs::create_directory(dir.file("empty"));
    CHECK(load_state(dir.path(), "empty")->status == Status::creating);
    CHECK(remove_state(dir.path(), "empty"));
    fs::create_directory(dir.file("broken"));
    std::ofstream(dir.file("broken/state.json")) << "{\"version\":1,";
    CHECK_FALSE(load_state(dir.path(), "broken"));
    std::ofstream(dir.file("broken/state.json")) << "{\"version\":99}";
    CHECK(load_state(dir.path(), "broken").error().message.find("another version") != std::string::npos);
    std::ofstream(dir.file("broken/foreign")) << "x";
    CHECK(remove_state(dir.path(), "broken"));
    CHECK_FALSE(fs::exists(dir.file("broken")));
}

TEST_CASE("state: a container that is being removed exists for nobody but who removes it") {
    TempDir dir;
    auto state = StateDir::create(dir.path(), record_of("web"), "{}");
    REQUIRE(state);
    state->commit();
    state->unlock();
    std::ofstream(dir.file("web/init")) << ::getpid() << " 1";  // which has ended long ago
    const auto lock = StateLock::take(dir.path(), "web");
    REQUIRE(lock);
    REQUIRE(fs::remove(dir.file("web/config.json")));
    CHECK(load_state(dir.path(), "web")->status == Status::stopped);
    REQUIRE(fs::remove(dir.file("web/init")));
    CHECK(load_state(dir.path(), "web").error().code == kNoSuchContainer);
    CHECK(load_all_states(dir.path())->empty());
    CHECK(load_for_delete(dir.path(), "web", false)->status == Status::creating);
    REQUIRE(fs::remove(dir.file("web/state.json")));
    CHECK(load_state(dir.path(), "web").error().code == kNoSuchContainer);
}

TEST_CASE("state: created while its socket waits, running once that is gone") {
    TempDir dir;
    const auto state = StateDir::create(dir.path(), record_of("web"), "{}");
    REQUIRE(state);
    REQUIRE(state->record_init(::getpid()));
    const auto socket = state->make_start_socket();
    REQUIRE(socket);
    CHECK(load_state(dir.path(), "web")->status == Status::creating);
    REQUIRE(state->mark_created());
    CHECK(load_state(dir.path(), "web")->status == Status::created);
    CHECK(connect_to_start(dir.path(), "web"));
    CHECK(forget_start_socket(dir.path(), "web"));
    CHECK(load_state(dir.path(), "web")->status == Status::running);
    CHECK(connect_to_start(dir.path(), "web").error().code == ENOENT);
}

TEST_CASE("state: the configuration is kept as it was") {
    TempDir dir;
    const auto state = StateDir::create(dir.path(), record_of("web"), "{\"as\": \"it was\"}");
    REQUIRE(state);
    CHECK(*load_config_text(dir.path(), "web") == "{\"as\": \"it was\"}");
}

TEST_CASE("state: the lock is held while a container is made, and free when its maker is gone") {
    TempDir dir;
    int made[2];
    REQUIRE(::pipe(made) == 0);
    const pid_t maker = ::fork();
    if (maker == 0) {
        auto state = StateDir::create(dir.path(), record_of("web"), "{}");
        [[maybe_unused]] const ssize_t told = ::write(made[1], "x", 1);
        for (;;) ::pause();
    }
    char byte = 0;
    REQUIRE(::read(made[0], &byte, 1) == 1);
    const UniqueFd held(::open(dir.file("web").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    CHECK(::flock(held.get(), LOCK_EX | LOCK_NB) != 0);
    ::kill(maker, SIGKILL);
    ::waitpid(maker, nullptr, 0);
    CHECK(StateLock::take(dir.path(), "web"));
    CHECK(StateLock::take(dir.path(), "none").error().code == kNoSuchContainer);
    CHECK(remove_state(dir.path(), "web"));
}

TEST_CASE("state: how long a container was not used does not depend on the time of day") {
    TempDir dir;
    const auto state = StateDir::create(dir.path(), record_of("web"), "{}");
    REQUIRE(state);
    CHECK(seconds_since_use(dir.path(), "web") <= 1);
    const std::string record = dir.file("web/state.json");
    const auto set = [&](clockid_t clock, time_t ago) {
        timespec time{};
        ::clock_gettime(clock, &time);
        time.tv_sec -= ago;
        const timespec both[2] = {time, time};
        REQUIRE(::utimensat(AT_FDCWD, record.c_str(), both, 0) == 0);
    };
    // What a clock would leave that was set forward by an hour meanwhile.
    set(CLOCK_REALTIME, 3600);
    CHECK(seconds_since_use(dir.path(), "web") == 0);
    set(CLOCK_BOOTTIME, 3600);
    CHECK(seconds_since_use(dir.path(), "web") >= 3600);
    mark_use(dir.path(), "web");
    CHECK(seconds_since_use(dir.path(), "web") <= 1);
}

TEST_CASE("state: ids") {
    for (const char* id : {"a", "web-1", "A_b.c+d", "0"}) CHECK(check_container_id(id));
    CHECK_FALSE(check_container_id("-y"));
    for (const std::string& id :
         std::vector<std::string>{"", ".", "..", ".a", ".seccomp", ".turn", "a/b", "a b", "a\n", "ä", std::string(256, 'a')}) {
        CAPTURE(id);
        CHECK_FALSE(check_container_id(id));
    }
}
