// The cache of compiled programs: what it saves, what it refuses to believe, and how large it gets.
#include "seccomp/cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "calls.hpp"
#include "seccomp/cache_key.hpp"
#include "support/temp_dir.hpp"

namespace pinfold::testing {

namespace {

namespace fs = std::filesystem;

constexpr uid_t kSomebodyElse = 65534;

Seccomp sample() {
    Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"read", "write"}, "SCMP_ACT_ALLOW")});
    section.flags = {"SECCOMP_FILTER_FLAG_LOG"};
    return section;
}

// As many different profiles as one likes.
Seccomp numbered(uint32_t n) { return profile("SCMP_ACT_ALLOW", {rule_errno({"mkdir"}, "SCMP_ACT_ERRNO", n)}); }

SeccompFilter cached(const Seccomp& section, const std::string& dir) {
    Result<SeccompFilter> result = compile_seccomp_cached(section, dir);
    REQUIRE_MESSAGE(result, result.error().message);
    return std::move(result).value();
}

bool same(const SeccompFilter& a, const SeccompFilter& b) {
    return a.flags == b.flags && a.program.size() == b.program.size() &&
           std::memcmp(a.program.data(), b.program.data(), a.program.size() * sizeof(sock_filter)) == 0;
}

std::string entry_path(const std::string& dir, const Seccomp& section) {
    return dir + "/" + seccomp_cache_name(seccomp_cache_key(section));
}

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_content(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
}

size_t files_in(const std::string& dir) { return size_t(std::distance(fs::directory_iterator(dir), {})); }

// A program nobody would compile: if it comes back, the file was believed.
SeccompFilter forged() { return {{BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}, 0}; }

// A well-formed entry with the forged program, as whoever knows the format could write it.
std::string forged_entry(const Seccomp& section, uint32_t instructions = 1) {
    const uint32_t flags_and_count[] = {0, instructions};
    std::string body(reinterpret_cast<const char*>(flags_and_count), sizeof flags_and_count);
    body.append(reinterpret_cast<const char*>(forged().program.data()), sizeof(sock_filter));
    body += seccomp_cache_key(section);
    const uint64_t checksum = quick_hash(body);
    return "pfseccm2" + std::string(reinterpret_cast<const char*>(&checksum), sizeof checksum) + body;
}

// The cache directory does not exist yet; the directory around it goes away with the test.
struct CacheDir {
    TempDir parent;
    std::string path = parent.file("cache");
};

}  // namespace

TEST_CASE("a hit gives the bytes and flags that compiling gives") {
    const CacheDir dir;
    const SeccompFilter direct = compiled(sample());
    CHECK(direct.flags == SECCOMP_FILTER_FLAG_LOG);
    CHECK(same(cached(sample(), dir.path), direct));
    REQUIRE(fs::exists(entry_path(dir.path, sample())));
    CHECK(same(cached(sample(), dir.path), direct));
    CHECK(files_in(dir.path) == 1);
}

TEST_CASE("an entry is what a hit returns") {
    // The other tests show refusals by the forged program's absence: here it is believed, so absence means something.
    const CacheDir dir;
    cached(sample(), dir.path);
    write_content(entry_path(dir.path, sample()), forged_entry(sample()));
    CHECK(same(cached(sample(), dir.path), forged()));
}

TEST_CASE("directory and files are for their owner only") {
    const CacheDir dir;
    cached(sample(), dir.path);
    struct stat info {};
    REQUIRE(::stat(dir.path.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
    REQUIRE(::stat(entry_path(dir.path, sample()).c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0600);
}

TEST_CASE("a damaged file is not used, and is written anew") {
    const CacheDir dir;
    const SeccompFilter direct = cached(sample(), dir.path);
    const std::string path = entry_path(dir.path, sample());
    const std::string good = content_of(path);
    Seccomp other = sample();
    other.flags.clear();
    cached(other, dir.path);

    std::vector<std::string> damaged = {
        "",
        "x",
        good.substr(0, 23),
        good.substr(0, 24),
        good.substr(0, good.size() - 8),
        good + std::string(8, '\0'),
        content_of(entry_path(dir.path, other)),
        std::string(1 << 20, 'x'),
    };
    // One flipped bit in every byte: magic, checksum, flags, count, program and key.
    for (size_t at = 0; at < good.size(); ++at) {
        damaged.push_back(good);
        damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 4);
    }
    for (const std::string& content : damaged) {
        write_content(path, content);
        CHECK(same(cached(sample(), dir.path), direct));
        CHECK(content_of(path) == good);
    }
}

TEST_CASE("a file whose checksum is right and whose count is not is refused") {
    const CacheDir dir;
    const SeccompFilter direct = cached(sample(), dir.path);
    for (const uint32_t instructions : {0U, 2U, 0x20000001U, ~0U}) {
        write_content(entry_path(dir.path, sample()), forged_entry(sample(), instructions));
        CHECK(same(cached(sample(), dir.path), direct));
    }
}

TEST_CASE("a program is that of the profile in its file, whatever the file's name") {
    const CacheDir dir;
    const SeccompFilter direct = cached(sample(), dir.path);
    write_content(entry_path(dir.path, sample()), forged_entry(numbered(1)));
    CHECK(same(cached(sample(), dir.path), direct));
}

TEST_CASE("a profile of more than a megabyte is compiled each time") {
    const CacheDir dir;
    Seccomp large = sample();
    large.syscalls[0].names.emplace_back(1 << 20, 'x');  // not known, and left out
    CHECK(same(cached(large, dir.path), compiled(large)));
    CHECK_FALSE(fs::exists(dir.path));
}

TEST_CASE("a file that others could have made is not believed") {
    const CacheDir dir;
    const SeccompFilter direct = cached(sample(), dir.path);
    const std::string path = entry_path(dir.path, sample());
    const std::string planted = dir.parent.file("planted");
    write_content(planted, forged_entry(sample()));
    fs::remove(path);

    SUBCASE("a symbolic link") { fs::create_symlink(planted, path); }
    SUBCASE("writable by the group") {
        fs::copy(planted, path);
        REQUIRE(::chmod(path.c_str(), 0620) == 0);
    }
    SUBCASE("writable by all") {
        fs::copy(planted, path);
        REQUIRE(::chmod(path.c_str(), 0602) == 0);
    }
    SUBCASE("a fifo") { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }
    SUBCASE("a directory") { fs::create_directory(path); }
    CHECK(same(cached(sample(), dir.path), direct));
    CHECK(content_of(planted) == forged_entry(sample()));  // not written through the link
}

TEST_CASE("a file of another user is not believed") {
    if (::geteuid() != 0) SKIP_TEST("giving a file to another user takes root");
    const CacheDir dir;
    const SeccompFilter direct = cached(sample(), dir.path);
    const std::string path = entry_path(dir.path, sample());
    write_content(path, forged_entry(sample()));
    REQUIRE(::chown(path.c_str(), kSomebodyElse, kSomebodyElse) == 0);
    CHECK(same(cached(sample(), dir.path), direct));
}

TEST_CASE("a directory that is not ours alone is not used") {
    const CacheDir dir;
    const std::string real = dir.parent.file("real");
    REQUIRE(::mkdir(real.c_str(), 0700) == 0);
    write_content(entry_path(real, sample()), forged_entry(sample()));
    std::string used = real;

    SUBCASE("a symbolic link") {
        fs::create_directory_symlink(real, dir.path);
        used = dir.path;
    }
    SUBCASE("writable by the group") { REQUIRE(::chmod(real.c_str(), 0770) == 0); }
    SUBCASE("writable by all, sticky or not") { REQUIRE(::chmod(real.c_str(), 01777) == 0); }
    SUBCASE("a file") {
        used = dir.parent.file("file");
        write_content(used, "");
    }
    CHECK(same(cached(sample(), used), compiled(sample())));
    CHECK(content_of(entry_path(real, sample())) == forged_entry(sample()));
    CHECK(files_in(real) == 1);
}

TEST_CASE("a directory of another user is not used") {
    if (::geteuid() != 0) SKIP_TEST("giving a directory to another user takes root");
    const CacheDir dir;
    REQUIRE(::mkdir(dir.path.c_str(), 0755) == 0);
    write_content(entry_path(dir.path, sample()), forged_entry(sample()));
    REQUIRE(::chown(dir.path.c_str(), kSomebodyElse, kSomebodyElse) == 0);
    CHECK(same(cached(sample(), dir.path), compiled(sample())));
}

TEST_CASE("a cache that cannot be made is no error") {
    const CacheDir dir;
    CHECK(same(cached(sample(), dir.path + "/two/levels"), compiled(sample())));
    CHECK(same(cached(sample(), ""), compiled(sample())));
}

TEST_CASE("a profile that does not compile fails with and without a cache, and leaves nothing there") {
    const CacheDir dir;
    CHECK_FALSE(compile_seccomp_cached(profile("nonsense"), dir.path));
    CHECK(files_in(dir.path) == 0);
}

TEST_CASE("whatever changes the program changes the key") {
    const auto with = [](auto change) {
        const SyscallArg arg{0, 1, 2, "SCMP_CMP_EQ"};
        Seccomp section = profile("SCMP_ACT_ERRNO", {rule({"read", "write"}, "SCMP_ACT_ALLOW", {arg})});
        section.architectures = {"SCMP_ARCH_X86"};
        section.flags = {"SECCOMP_FILTER_FLAG_LOG"};
        change(section);
        return seccomp_cache_key(section);
    };
    const std::vector<std::string> keys = {
        with([](Seccomp&) {}),
        with([](Seccomp& s) { s.default_action = "SCMP_ACT_TRAP"; }),
        with([](Seccomp& s) { s.default_errno_ret = 0; }),
        with([](Seccomp& s) { s.default_errno_ret = 1; }),
        with([](Seccomp& s) { s.flags.clear(); }),
        with([](Seccomp& s) { s.architectures.clear(); }),
        with([](Seccomp& s) { std::swap(s.flags, s.architectures); }),
        with([](Seccomp& s) { s.architectures.push_back("SCMP_ARCH_X32"); }),
        with([](Seccomp& s) { s.syscalls.clear(); }),
        with([](Seccomp& s) { s.syscalls.push_back(s.syscalls[0]); }),
        with([](Seccomp& s) { s.syscalls[0].names = {"readwrite"}; }),
        with([](Seccomp& s) {
            s.syscalls[0].names = {"rea", "dwrite"};
        }),
        with([](Seccomp& s) { s.syscalls[0].action = "SCMP_ACT_LOG"; }),
        with([](Seccomp& s) { s.syscalls[0].errno_ret = 0; }),
        with([](Seccomp& s) { s.syscalls[0].args.clear(); }),
        with([](Seccomp& s) { s.syscalls[0].args[0].index = 1; }),
        with([](Seccomp& s) { s.syscalls[0].args[0].value = 2; }),
        with([](Seccomp& s) { s.syscalls[0].args[0].value_two = 1; }),
        with([](Seccomp& s) { s.syscalls[0].args[0].op = "SCMP_CMP_NE"; }),
    };
    CHECK(std::set<std::string>(keys.begin(), keys.end()).size() == keys.size());
    CHECK(with([](Seccomp&) {}) == with([](Seccomp& s) { s.listener_metadata = "of this container"; }));
}

TEST_CASE("the cache keeps 64 programs and drops the oldest; other files it leaves alone") {
    const CacheDir dir;
    REQUIRE(::mkdir(dir.path.c_str(), 0700) == 0);
    write_content(dir.path + "/README", "not ours");
    for (uint32_t n = 0; n < 64; ++n) {
        cached(numbered(n), dir.path);
        // Files of one tick would be of one age: set it.
        const timespec age{1'000'000 + long{n}, 0};
        const timespec times[] = {age, age};
        REQUIRE(::utimensat(AT_FDCWD, entry_path(dir.path, numbered(n)).c_str(), times, 0) == 0);
    }
    CHECK(files_in(dir.path) == 65);
    cached(numbered(0), dir.path);  // a hit removes nothing
    CHECK(files_in(dir.path) == 65);

    for (uint32_t n = 64; n < 67; ++n) cached(numbered(n), dir.path);
    CHECK(files_in(dir.path) == 65);
    CHECK(fs::exists(dir.path + "/README"));
    for (uint32_t n = 0; n < 67; ++n) CHECK(fs::exists(entry_path(dir.path, numbered(n))) == (n >= 3));
}

TEST_CASE("a temporary file that a killed process left is cleared away in the end") {
    const CacheDir dir;
    cached(sample(), dir.path);
    const std::string left = dir.path + "/" + std::string(64, 'a') + ".1234.tmp";
    write_content(left, "half a prog");
    const timespec long_ago[] = {{1, 0}, {1, 0}};
    REQUIRE(::utimensat(AT_FDCWD, left.c_str(), long_ago, 0) == 0);
    for (uint32_t n = 1; n <= 63; ++n) cached(numbered(n), dir.path);
    CHECK_FALSE(fs::exists(left));
    CHECK(files_in(dir.path) == 64);
}

}  // namespace pinfold::testing
