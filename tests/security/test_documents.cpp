// Files of somebody else, which are not what they should be: other kinds of files, too large ones, and those that
// would take far more memory than they are long.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "peak.hpp"
#include "support/tried.hpp"

namespace pinfold::integration {

namespace {

using Words = std::vector<std::string>;

void make_socket(const fs::path& path) {
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const UniqueFd directory(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "/proc/self/fd/" + std::to_string(directory.get()) + "/" + path.filename().string();
    std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

void make_sparse(const fs::path& path) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    REQUIRE(::ftruncate(file.get(), off_t{1} << 30) == 0);
}

struct Kind {
    const char* name;
    std::function<void(const fs::path&)> make;
    const char* words;
};

const Kind kKinds[] = {
    {"a FIFO", [](const fs::path& path) { REQUIRE(::mkfifo(path.c_str(), 0644) == 0); },
     " is a FIFO, not a regular file"},
    {"endless zeros", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); },
     " is a device, not a regular file"},
    {"a directory", [](const fs::path& path) { fs::create_directory(path); }, " is a directory, not a regular file"},
    {"a socket", make_socket, " is a socket, not a regular file"},
    {"1 GiB", make_sparse, " has 1073741824 bytes, allowed: at most "},
};

// A verb that reads a file: the place of the file, and how it is asked to.
struct Use {
    const char* name;
    std::function<fs::path(const Bundle&)> place;
    std::function<Words(const Bundle&, const std::string&)> words;
};

fs::path beside(const Bundle& bundle) { return bundle.host() / "document.json"; }

Words job(const Bundle& bundle, const Words& options) {
    Words words = {"sandbox", "--name", bundle.id()};
    words.insert(words.end(), options.begin(), options.end());
    return words;
}

const Use kUses[] = {
    {"config.json of a bundle", [](const Bundle& b) { return b.path() / "config.json"; },
     [](const Bundle& b, const std::string&) {
         return Words{"run", "--bundle", b.path(), b.id()};
     }},
    {"config.json by --config", beside,
     [](const Bundle& b, const std::string& file) {
         return Words{"create", "--bundle", b.path(), "--config", file, b.id()};
     }},
    {"a policy", beside,
     [](const Bundle& b, const std::string& file) {
         return Words{"--policy", file, "kill", b.id()};
     }},
    {"limits", beside,
     [](const Bundle& b, const std::string& file) {
         return job(b, {"--limits", file, "--", "true"});
     }},
    {"a profile", beside,
     [](const Bundle& b, const std::string& file) {
         return job(b, {"--seccomp", file, "--", "true"});
     }},
    {"a profile to be shown", beside,
     [](const Bundle&, const std::string& file) {
         return Words{"seccomp", "show", file};
     }},
    {"a template", beside,
     [](const Bundle& b, const std::string& file) {
         return job(b, {"--template", file, "--", "true"});
     }},
    {"a script", beside,
     [](const Bundle& b, const std::string& file) {
         return job(b, {"--lang", "sh", file});
     }},
    {"resources", beside,
     [](const Bundle& b, const std::string& file) {
         return Words{"update", "-r", file, b.id()};
     }},
};

// What is asked of a container that runs.
const Use kInsideUses[] = {
    {"process.json", beside,
     [](const Bundle& b, const std::string& file) {
         return Words{"exec", "--process", file, b.id()};
     }},
    {"state.json", [](const Bundle& b) { return b.state_root() / b.id() / "state.json"; },
     [](const Bundle& b, const std::string&) {
         return Words{"state", b.id()};
     }},
    {"config.json of the state", [](const Bundle& b) { return b.state_root() / b.id() / "config.json"; },
     [](const Bundle& b, const std::string&) {
         return Words{"exec", b.id(), "/probe", "stat", "/"};
     }},
    {"init of the state", [](const Bundle& b) { return b.state_root() / b.id() / "init"; },
     [](const Bundle& b, const std::string&) {
         return Words{"state", b.id()};
     }},
};

// The file in the place of what may be there, which comes back.
void attack(const Bundle& bundle, const Use& use) {
    const fs::path place = use.place(bundle), kept = bundle.host() / "kept";
    const bool had = fs::exists(place);
    for (const Kind& kind : kKinds) {
        INFO(std::string(use.name), ": ", std::string(kind.name));
        if (had) fs::rename(place, kept);
        kind.make(place);
        const Ended ended = run_program(bundle.verb(use.words(bundle, place)));
        fs::remove_all(place);
        if (had) fs::rename(kept, place);
        INFO(ended.status, ": ", ended.err);
        // A link in the place of a state is refused as such.
        const bool is_link =
            ended.err.find("ELOOP") != std::string::npos && std::string(kind.words).find("device") != std::string::npos;
        WITHSTANDS(std::string(use.name) + ": " + kind.name,
                   ended.status != 0 && ended.status != 128 + SIGABRT &&
                       (is_link || ended.err.find(place.filename().string() + kind.words) != std::string::npos));
    }
}

constexpr size_t kCap = size_t{8} << 20;

// A document that begins as the config does and is filled with a piece again and again, up to the cap.
struct Nasty {
    const char* name;
    std::string begin;
    std::function<std::string(size_t)> piece;  // the n-th
    std::string end;
    const char* words;  // of the refusal; empty: it is accepted
};

std::string number_of(size_t i) { return std::to_string(i); }

size_t fill(const Bundle& bundle, const Nasty& nasty) {
    std::string head = bundle.config.dump();
    head.pop_back();  // the brace
    std::ofstream file(bundle.path() / "config.json");
    file << head << nasty.begin;
    size_t size = head.size() + nasty.begin.size() + nasty.end.size() + 1;
    for (size_t i = 0;; ++i) {
        const std::string piece = nasty.piece(i);
        if (size + piece.size() > kCap) break;
        file << piece;
        size += piece.size();
    }
    file << nasty.end << '}';
    return size;
}

const Nasty kNasty[] = {
    {"blanks", "", [](size_t) { return std::string(1000, ' '); }, "", ""},
    {"long annotations", ",\"annotations\":{",
     [](size_t i) { return "\"k" + number_of(i) + "\":\"" + std::string(1'000'000, 'a') + "\","; }, "\"last\":\"\"}",
     ""},
    {"many annotations", ",\"annotations\":{",
     [](size_t i) { return "\"k" + number_of(i) + "\":\"" + std::string(210, 'a') + "\","; }, "\"last\":\"\"}", ""},
    {"many short annotations", ",\"annotations\":{",
     [](size_t i) { return i < 39'000 ? "\"" + number_of(i) + "\":\"\"," : std::string(1000, ' '); }, "\"last\":\"\"}",
     ""},
    {"many strings that nobody asks for", ",\"x\":[", [](size_t) { return "\"" + std::string(210, 'a') + "\","; },
     "\"\"]", ""},
    {"one string", ",\"x\":\"", [](size_t) { return std::string(1000, 'a'); }, "\"", "allowed: at most that many"},
    {"one key", ",\"", [](size_t) { return std::string(1000, 'a'); }, "\":0", "allowed: at most that many"},
    {"one number", ",\"x\":1", [](size_t) { return std::string(1000, '0'); }, "", "allowed: at most that many"},
    {"many numbers", ",\"x\":[", [](size_t) { return std::string("0,"); }, "0]", "more values than"},
    {"many empty objects", ",\"x\":[", [](size_t) { return std::string("{},"); }, "0]", "more values than"},
    {"many empty strings", ",\"x\":[", [](size_t) { return std::string("\"\","); }, "0]", "more values than"},
    {"many keys", ",\"annotations\":{", [](size_t i) { return "\"" + number_of(i) + "\":\"\","; }, "\"\":\"\"}",
     "more values than"},
    {"100,000 nested arrays", ",\"x\":",
     [](size_t i) { return i < 100'000 ? std::string("[") : std::string(1000, ' '); }, "0", "nested deeper than 128"},
};

}  // namespace

TEST_CASE("documents: what is no regular file, or too large a one, is refused by its name") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"wait-signal"}).write_config();
    for (const Use& use : kUses) attack(bundle, use);
    const Container container(bundle, Container::As::running);
    for (const Use& use : kInsideUses) attack(bundle, use);
    CHECK(container.status() == "running");
}

TEST_CASE("documents: audit logs that are none are refused by their name") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    for (const Kind& kind : kKinds) {
        if (std::string(kind.name) == "1 GiB") continue;  // a log may be long
        const fs::path place = beside(bundle);
        kind.make(place);
        for (const char* verb : {"show", "verify"}) {
            INFO(std::string(kind.name), " for ", std::string(verb));
            const Ended ended = run_program(bundle.verb({"audit", verb, place}));
            INFO(ended.err);
            WITHSTANDS(kind.name, ended.status == 1 && ended.err.find(kind.words) != std::string::npos);
        }
        fs::remove_all(place);
    }
}

TEST_CASE("documents: standard input may be a pipe, and has the same bound") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const Container container(bundle.probe({"wait-signal"}), Container::As::running);
    for (const char* name : {"-", "/dev/stdin"}) {
        INFO(std::string(name));
        const Ended updated = run_program(bundle.verb({"update", "-r", name, bundle.id()}), {.input = "{}"});
        CHECK_MESSAGE(updated.status == 0, updated.err);
        const UniqueFd zeros(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
        const Ended endless =
            run_program(bundle.verb({"update", "-r", name, bundle.id()}), {.fds = {{0, zeros.get()}}});
        WITHSTANDS(
            "endless input",
            endless.status == 1 && endless.err.find("standard input has more than 8388608 bytes") != std::string::npos);
    }
}

TEST_CASE("documents: a container's passwd that is no file, or endless, is refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    fs::create_directories(bundle.rootfs() / "etc");
    const Container container(bundle.probe({"wait-signal"}), Container::As::running);
    const fs::path place = bundle.rootfs() / "etc/passwd";
    for (const Kind& kind : kKinds) {
        INFO(std::string(kind.name));
        fs::remove_all(place);
        kind.make(place);
        const Ended ended = container.exec({"--user", "somebody"}, {"/probe", "stat", "/"});
        INFO(ended.err);
        const std::string name = kind.name;
        const std::string words = name == "1 GiB"      ? "/etc/passwd has 1073741824 bytes, allowed: at most 1048576"
                                  : name == "a socket" ? "'somebody' is not in the container's /etc/passwd"
                                                       : "the container's /etc/passwd is not a regular file";
        WITHSTANDS(name, ended.status == 255 && ended.err.find(words) != std::string::npos);
    }
    fs::remove_all(place);
}

TEST_CASE("documents: a config takes memory in proportion to its size, whatever it is made of") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"stat", "/"}).write_config();
    const Words words = {"run", "--bundle", bundle.path(), bundle.id()};
    const size_t small = measure(bundle, words).peak;
    for (const Nasty& nasty : kNasty) {
        const size_t size = fill(bundle, nasty);
        const Measured measured = measure(bundle, words);
        INFO(std::string(nasty.name), ": ", measured.status, ", ", measured.err.substr(0, 300));
        INFO("its ", size, " bytes took ", measured.peak - small, " of memory");
        CHECK(measured.status == (*nasty.words == '\0' ? 0 : 1));
        CHECK(measured.err.find(nasty.words) != std::string::npos);
        WITHSTANDS(nasty.name, measured.peak <= small + std::max(3 * size, size_t{16} << 20));
    }
}

TEST_CASE("documents: a small config of many values takes no more than 16 MiB") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    bundle.probe({"stat", "/"}).write_config();
    const Words words = {"run", "--bundle", bundle.path(), bundle.id()};
    const size_t small = measure(bundle, words).peak;
    const Nasty rows[] = {
        {"annotations", ",\"annotations\":{", [](size_t i) { return "\"" + number_of(i) + "\":\"\","; }, "\"x\":\"\"}",
         ""},
        {"numbers", ",\"x\":[", [](size_t) { return std::string("0,"); }, "0]", ""},
        {"lists", ",\"x\":[", [](size_t) { return std::string("[0],"); }, "0]", ""},
        {"objects", ",\"x\":[", [](size_t) { return std::string("{\"a\":0},"); }, "0]", ""},
    };
    for (const Nasty& nasty : rows) {
        size_t count = 0;  // of values
        Nasty bounded = nasty;
        bounded.piece = [&](size_t i) { return (count += 2) < 39'000 ? nasty.piece(i) : std::string(kCap, ' '); };
        fill(bundle, bounded);
        const Measured measured = measure(bundle, words);
        INFO(std::string(nasty.name), ": ", measured.status, ", ", measured.err.substr(0, 300));
        INFO("it took ", measured.peak - small, " bytes of memory");
        CHECK(measured.status == 0);
        WITHSTANDS(nasty.name, measured.peak <= small + (size_t{16} << 20));
    }
}

// One process writes, pinfold reads: whenever it looks, there is more.
TEST_CASE("documents: a file that grows while it is read ends at the bound") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const fs::path place = bundle.path() / "config.json";
    write_text(place, "");
    const pid_t writer = ::fork();
    if (writer == 0) {
        const int file = ::open(place.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
        const std::string blanks(1 << 16, ' ');
        for (size_t written = 0; written < 4 * kCap; written += blanks.size()) {
            if (::write(file, blanks.data(), blanks.size()) < 0) ::_exit(1);
        }
        ::_exit(0);
    }
    Measured last;
    const auto is_large = [&] { return last.err.find("allowed: at most 8388608") != std::string::npos; };
    while (!is_large()) {
        last = measure(bundle, {"run", "--bundle", bundle.path(), bundle.id()});
        INFO(last.err);
        REQUIRE(last.status == 1);
    }
    int status = -1;
    REQUIRE(::waitpid(writer, &status, 0) == writer);
    CHECK(status == 0);
    WITHSTANDS("a growing file", last.peak < 5 * kCap);
}

}  // namespace pinfold::integration
