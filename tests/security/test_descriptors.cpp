// Descriptors and the program file of the runtime: what a container finds of them when the runtime comes in.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "attacks.hpp"
#include "cp.hpp"

namespace pinfold::integration {

namespace {

using As = Container::As;

// All that a runtime may have open itself at that time, and more.
const std::vector<int> kLeaked = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

// A program with an interpreter in its head does not start in an empty root.
bool is_static(const std::string& program) {
    return read_text(program).substr(0, 4096).find("/ld-") == std::string::npos;
}

// All of a file that an attack could change.
std::string program_file() {
    const std::string& path = runtime_command()[0];
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    return std::to_string(info.st_ino) + " " + std::to_string(info.st_mtim.tv_nsec) + " " + read_text(path);
}

// A caller that leaves a directory of the host open.
SpawnOptions leaking(const UniqueFd& directory) {
    SpawnOptions spawn;
    for (const int fd : kLeaked) spawn.fds.push_back({fd, directory.get()});
    return spawn;
}

json numbers_of(const json& fds) {
    json numbers = json::array();
    for (const json& each : fds) numbers.push_back(each["fd"]);
    return numbers;
}

// All names by which a payload may ask for one of the runtime's descriptors.
std::vector<std::string> names_of(int fd) {
    const std::string number = std::to_string(fd);
    return {"/proc/self/fd/" + number,
            "/proc/self/fd/" + number + "/tmp",
            "/proc/self/fd/" + number + "/..",
            "/proc/thread-self/fd/" + number,
            "/proc/1/fd/" + number,
            "/proc/self/task/1/fd/" + number,
            "/dev/fd/" + number,
            "/links/" + number,
            "/links/below-" + number,
            "/links/../proc/./self/fd/" + number};
}

void plant_links(const Bundle& bundle) {
    for (const int fd : kLeaked) {
        const std::string number = std::to_string(fd);
        plant(bundle.rootfs() / "links" / number, "/proc/self/fd/" + number);
        plant(bundle.rootfs() / "links" / ("below-" + number), "../proc/self/fd/" + number + "/tmp");
    }
}

// The container's first process reaches for the others while `act` makes some come in; what it has to say afterwards.
template <class Act>
json while_it_reaches(Bundle& bundle, const char* command, Act act) {
    bundle.probe({command});
    const Container container(bundle, As::running);
    CHECK(await_file(bundle.host() / "output").starts_with("READY"));
    act(container);
    container.must({"kill", bundle.id(), "TERM"});
    container.await_end();
    const std::string output = read_text(bundle.host() / "output");
    return json::parse(output.substr(output.find('{')));
}

void give_all_capabilities(Bundle& bundle) {
    json all = json::array();
    for (const char* name : {"CAP_SYS_PTRACE", "CAP_SYS_ADMIN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER",
                             "CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_NET_ADMIN", "CAP_MKNOD", "CAP_SYS_CHROOT"})
        all.push_back(name);
    for (const char* set : {"bounding", "effective", "permitted"}) bundle.config["process"]["capabilities"][set] = all;
}

}  // namespace

TEST_CASE("CVE-2016-9962: a process that joins is out of reach for those inside") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool mapped : {false, true}) {
        Bundle bundle;
        INFO(std::string(mapped ? "root of a user namespace, with all rights in it" : "root with few rights"));
        if (mapped) {
            map_ids(bundle);
            give_all_capabilities(bundle);
        }
        const json answer = while_it_reaches(bundle, "pry", [](const Container& container) {
            for (Rounds rounds(200); rounds.go_on();) {
                const Ended ended = container.exec({}, {"/probe", "exit", "0"});
                CHECK_MESSAGE(ended.status == 0, ended.err);
            }
        });
        CHECK(answer["met"] > 0);
        WITHSTANDS("descriptors, memory, tracing: " + answer.dump(), answer["reached"] == json::array());
    }
}

// A receipt is read of the process before its execve, so there is no trampoline: pinfold runs from a read-only clone.
TEST_CASE("CVE-2019-5736: a payload that is pinfold's own file cannot write it") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!is_static(runtime_command()[0])) SKIP_TEST("only a static pinfold can be a payload");
    const std::string before = program_file();
    Bundle bundle;
    fs::create_symlink("/proc/self/exe", bundle.rootfs() / "trick");
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd input(ends[0]);
    UniqueFd document(ends[1]);
    bundle.config["process"]["args"] = {"/trick", "update", "-r", "-", "inner"};
    const auto running = start(
        bundle, {.args = {"--strict", "--pid-file", bundle.host() / "pid"}, .spawn = {.fds = {{0, input.get()}}}});
    const std::string exe = "/proc/" + await_file(bundle.host() / "pid") + "/exe";
    // The inner pinfold waits for its document. Its file, and not that of the probe, is what must be refused.
    const UniqueFd own(::open(runtime_command()[0].c_str(), O_PATH | O_CLOEXEC));
    struct stat inner {
    }, outer{};
    REQUIRE(::fstat(own.get(), &outer) == 0);
    do REQUIRE(::stat(exe.c_str(), &inner) == 0);
    while (inner.st_ino != outer.st_ino);
    const UniqueFd held(::open(exe.c_str(), O_PATH | O_CLOEXEC));
    REQUIRE(held);
    document.reset();
    CHECK(running->finish().status == 1);
    // Now that nobody runs it any more.
    const UniqueFd writable(::open(("/proc/self/fd/" + std::to_string(held.get())).c_str(), O_WRONLY | O_CLOEXEC));
    const int code = errno;
    WITHSTANDS("the file of a payload that has ended", !writable && code == EROFS);
    WITHSTANDS("the file afterwards", program_file() == before);
}

TEST_CASE("CVE-2019-5736: what a payload can run of pinfold again is the trampoline, which ends") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const std::string before = program_file();
    for (const bool no_new_privileges : {true, false}) {
        Bundle bundle;
        bundle.config["process"]["noNewPrivileges"] = no_new_privileges;
        fs::create_symlink("/proc/self/exe", bundle.rootfs() / "link");
        write_text(bundle.rootfs() / "script", "#!/proc/self/exe\n");
        fs::permissions(bundle.rootfs() / "script", fs::perms(0755));
        for (const char* program : {"/proc/self/exe", "/link", "/script"}) {
            CAPTURE(program);
            bundle.config["process"]["args"] = {program, "--version"};
            const Outcome outcome = run(bundle);
            WITHSTANDS("run", outcome.status == 1 && outcome.out.empty());
        }
    }
    WITHSTANDS("the file afterwards", program_file() == before);
}

TEST_CASE("CVE-2019-5736: a container that waits has no page and no link of pinfold's file, and none that can change") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    UniqueFd held;
    {
        const Container container(waiting(bundle), As::created);
        const std::string proc = "/proc/" + std::to_string(container.pid());
        std::istringstream maps(read_text(proc + "/maps"));
        for (std::string line; std::getline(maps, line);) {
            const size_t file = line.find('/');
            WITHSTANDS(line, file == std::string::npos || line.substr(file).starts_with("/memfd:pinfold"));
        }
        WITHSTANDS("its program", !UniqueFd(::open((proc + "/exe").c_str(), O_WRONLY | O_CLOEXEC)) && errno == ETXTBSY);
        held = UniqueFd(::open((proc + "/exe").c_str(), O_PATH | O_CLOEXEC));
        REQUIRE(held);
    }
    // Now that nobody runs it any more.
    const UniqueFd later(::open(("/proc/self/fd/" + std::to_string(held.get())).c_str(), O_RDWR | O_CLOEXEC));
    WITHSTANDS("written to later", ::write(later.get(), "x", 1) < 0 && errno == EPERM);
    WITHSTANDS("cut later", ::ftruncate(later.get(), 0) != 0 && errno == EPERM);
    WITHSTANDS("the seals", ::fcntl(later.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0 && errno == EPERM);
}

TEST_CASE("CVE-2019-5736: pinfold's own file cannot be written while it comes in") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    if (!is_static(runtime_command()[0])) SKIP_TEST("only a static pinfold can be a payload");
    const std::string before = program_file();
    Bundle bundle;
    // Each of them makes the kernel run the runtime's own file as the payload.
    fs::create_symlink("/proc/self/exe", bundle.rootfs() / "link");
    write_text(bundle.rootfs() / "script", "#!/proc/self/exe\n");
    write_text(bundle.rootfs() / "nested", "#!/link --version\n");
    for (const char* name : {"script", "nested"}) fs::permissions(bundle.rootfs() / name, fs::perms(0755));
    const json answer = while_it_reaches(bundle, "overwrite", [](const Container& container) {
        for (Rounds rounds(40); rounds.go_on();) {
            for (const char* program : {"/proc/self/exe", "/link", "/script", "/nested"})
                container.exec({}, {program, "features"});
        }
    });
    CHECK(answer["met"] > 0);
    WITHSTANDS("programs of processes that join: " + answer.dump(), answer["reached"] == json::array());
    WITHSTANDS("the file afterwards", program_file() == before);
    for (const char* program : {"/proc/self/exe", "/link", "/script", "/nested"}) {
        bundle.config["process"]["args"] = {program, "--version"};
        run(bundle);
        WITHSTANDS(std::string("run ") + program, program_file() == before);
    }
}

TEST_CASE("CVE-2024-21626: no working directory by a descriptor of the runtime or its caller") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    const UniqueFd leaked(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const SpawnOptions spawn = leaking(leaked);
    Bundle bundle;
    plant_links(bundle);
    for (const int fd : sampled(kLeaked)) {
        for (const std::string& name : sampled(names_of(fd))) {
            INFO("cwd ", name);
            bundle.config["process"]["cwd"] = name;
            const Outcome outcome = run(bundle, {.spawn = spawn});
            WITHSTANDS("run", is_refused(outcome, "cwd: "));
            if (name.starts_with("/links")) CHECK_FALSE(fs::exists(bundle.rootfs() / "tmp/tmp"));
        }
    }
    // Not even by one that it is meant to have.
    bundle.config["process"]["cwd"] = "/proc/self/fd/3";
    WITHSTANDS("a preserved one", is_refused(run(bundle, {.args = {"--preserve-fds", "1"}, .spawn = spawn}), "cwd: "));
    bundle.config["process"]["cwd"] = "/";
    bundle.probe({"wait-signal"});
    const Container container(bundle, As::running, {.spawn = spawn});
    for (const int fd : sampled(kLeaked)) {
        for (const std::string& name : sampled(names_of(fd))) {
            INFO("cwd ", name);
            const Ended ended = container.exec({"--cwd", name}, {"/probe", "report"}, spawn);
            WITHSTANDS("exec", is_refused(ended, "cwd: ") && ended.out.empty());
        }
    }
}

TEST_CASE("CVE-2024-21626: the payload has the standard descriptors and no others") {
    NEEDS_ROOT();
    const UniqueFd leaked(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const SpawnOptions spawn = leaking(leaked);
    const json standard = {0, 1, 2};
    Bundle bundle;
    WITHSTANDS("run", numbers_of(report_of(bundle, {.spawn = spawn})["fds"]) == standard);
    const auto reported = [&] {
        const Container container(bundle.probe({"report"}), As::running, {.spawn = spawn});
        container.await_end();
        return json::parse(read_text(bundle.host() / "output"));
    };
    WITHSTANDS("create and start", numbers_of(reported()["fds"]) == standard);
    // Of the one that waits for start, too: nobody inside can look at it, but the host can.
    const auto directories_of_created = [&] {
        const Container created(bundle.probe({"report"}), As::created, {.spawn = spawn});
        const fs::directory_iterator fds("/proc/" + std::to_string(created.pid()) + "/fd");
        return std::count_if(begin(fds), end(fds), [](const auto& fd) { return fs::is_directory(fd.path()); });
    };
    WITHSTANDS("a container that waits for start", directories_of_created() == 0);
    const Container container(bundle.probe({"wait-signal"}), As::running, {.spawn = spawn});
    const Ended ended = container.exec({}, {"/probe", "report"}, spawn);
    WITHSTANDS("exec", numbers_of(json::parse(ended.out)["fds"]) == standard);
}

namespace {

std::vector<std::vector<int>> some_of_the_streams() {
    std::vector<std::vector<int>> all;
    for (unsigned set = 1; set < 8; ++set) {
        std::vector<int>& chosen = all.emplace_back();
        for (const int number : {0, 1, 2}) {
            if ((set >> number & 1) != 0) chosen.push_back(number);
        }
    }
    return all;
}

// The three streams and nothing else, each of them a null device or a pipe.
bool has_streams_only(const fs::path& stored) {
    const json text = json::parse(fs::exists(stored) ? read_text(stored) : "", nullptr, false);
    const json fds = text.is_object() ? text["fds"] : json::array();
    INFO(fds.dump());
    CHECK(numbers_of(fds) == json({0, 1, 2}));
    return numbers_of(fds) == json({0, 1, 2}) && std::ranges::all_of(fds, [](const json& each) {
               const std::string target = each.value("target", "");
               return target.ends_with("/null") || target.starts_with("pipe:[");
           });
}

}  // namespace

TEST_CASE("closed standard streams: nothing that is opened takes their place") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const std::vector<int>& closed : some_of_the_streams()) {
        INFO("closed: ", json(closed).dump());
        const SpawnOptions spawn{.closed = closed};
        Bundle bundle;
        const fs::path out = bundle.host() / "out";
        fs::create_directory(out);
        fs::permissions(out, fs::perms(0777));
        bundle.bind(out, "/out");
        const std::string probe = (bundle.rootfs() / "probe").string() + ":/probe";
        const auto stored = [&](const char* how, int status) {
            CHECK(status == 0);
            WITHSTANDS(how, has_streams_only(out / how));
        };
        bundle.probe({"store-fds", "/out/run"});
        stored("run", run(bundle, {.spawn = spawn}).status);
        const std::vector<std::string> binds = {"--bind", out.string() + ":/out", "--ro-bind", probe};
        std::vector<std::string> words = bundle.verb({"sandbox", "--name", bundle.id()});
        words.insert(words.end(), binds.begin(), binds.end());
        for (const char* how : {"sandbox", "result"}) {
            std::vector<std::string> all = words;
            if (how == std::string("result")) all.insert(all.end(), {"--result", (bundle.host() / "result").string()});
            all.insert(all.end(), {"--", "/probe", "store-fds", std::string("/out/") + how});
            stored(how, run_program(all, spawn).status);
        }
        CHECK(json::parse(read_text(bundle.host() / "result"), nullptr, false)["status"] == "exited");
        const Container container(bundle.probe({"wait-signal"}), As::running);
        stored("exec", container.exec({}, {"/probe", "store-fds", "/out/exec"}, spawn).status);
        stored("watched", container.exec({"--timeout", "100s"}, {"/probe", "store-fds", "/out/watched"}, spawn).status);
        write_text(bundle.host() / "there", "bytes");
        const std::string inside = bundle.id() + ":/out/back";
        for (const auto& [from, to] : {std::pair((bundle.host() / "there").string(), inside),
                                       std::pair(inside, (bundle.host() / "again").string())})
            CHECK(run_program(bundle.verb({"cp", from, to}), spawn).status == 0);
        WITHSTANDS("cp", read_text(out / "back") == "bytes" && read_text(bundle.host() / "again") == "bytes");
    }
}

}  // namespace pinfold::integration
