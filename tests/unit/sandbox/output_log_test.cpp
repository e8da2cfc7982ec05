// The log of a sandbox that stays: pieces come back in their order, the newest are kept, whoever reads meanwhile.
#include "sandbox/output_log.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

UniqueFd open_log(const TempDir& dir, int flags) {
    return UniqueFd(::open(dir.file("output").c_str(), flags | O_CLOEXEC, 0600));
}

OutputLog make_log(const TempDir& dir, uint64_t limit) {
    Result<OutputLog> log = OutputLog::create(open_log(dir, O_RDWR | O_CREAT), limit);
    REQUIRE(log);
    return std::move(*log);
}

std::string read_from(int file, uint64_t& offset) {
    std::string text;
    const Result<void> read = read_output(file, offset, [&](size_t stream, std::string_view bytes) -> Result<void> {
        text += stream == kDropped ? "dropped;" : concat(stream, ':', bytes, ';');
        return {};
    });
    CHECK(read);
    return text;
}

}  // namespace

TEST_CASE("output log: pieces are read in their order, with their streams, and each once") {
    const TempDir dir;
    OutputLog log = make_log(dir, 1 << 20);
    const UniqueFd reader = open_log(dir, O_RDONLY);
    uint64_t offset = 0;
    CHECK(read_from(reader.get(), offset) == "");
    CHECK(log.append(0, "one\n"));
    CHECK(log.append(1, std::string_view("\0\n1 2 3\n", 8)));
    CHECK(read_from(reader.get(), offset) == concat("0:one\n;1:", std::string_view("\0\n1 2 3\n", 8), ';'));
    CHECK(read_from(reader.get(), offset) == "");
    CHECK(log.append(0, "two"));
    CHECK(read_from(reader.get(), offset) == "0:two;");
}

TEST_CASE("output log: the newest is kept, and what is older takes no room") {
    const TempDir dir;
    constexpr uint64_t kLimit = 64 << 10;
    OutputLog log = make_log(dir, kLimit);
    const UniqueFd reader = open_log(dir, O_RDONLY);
    uint64_t slow = 0;
    for (int i = 0; i < 20'000; ++i) {
        REQUIRE(log.append(0, concat("line ", i)));
        if (i == 0) CHECK(read_from(reader.get(), slow) == "0:line 0;");
    }
    uint64_t offset = 0;
    const std::string all = read_from(reader.get(), offset);
    CHECK(all.ends_with("0:line 19998;0:line 19999;"));
    CHECK(all.starts_with("dropped;0:line "));
    CHECK(log.has_dropped());
    CHECK(read_from(reader.get(), slow) == all);  // who was overtaken goes on with what is left
    // As much as was promised, though each line is a piece of its own; the test puts three bytes around each.
    const auto lines = uint64_t(std::ranges::count(all, ';') - 1);
    const uint64_t kept = all.size() - (sizeof "dropped;" - 1) - 3 * lines;
    CHECK(kept <= kLimit);
    CHECK(kept > kLimit * 7 / 8 - 100);
    struct stat info {};
    REQUIRE(::fstat(reader.get(), &info) == 0);
    CHECK(uint64_t(info.st_blocks) * 512 <= kLimit + kLimit / 4 + 12288);
}

TEST_CASE("output log: where the file can grow no more, the newest is kept in what there is") {
    const TempDir dir;
    OutputLog log = make_log(dir, 16 << 20);
    const std::string line(5000, 'x');
    // By an rlimit of this process, which is ended with a signal unless that is ignored.
    const auto before = ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const rlimit small{100 << 10, limit.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    bool kept = true;
    for (int i = 0; i < 1000; ++i) kept = kept && log.append(0, concat(i, line));
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, before);
    CHECK(kept);
    const UniqueFd reader = open_log(dir, O_RDONLY);
    uint64_t offset = 0;
    const std::string all = read_from(reader.get(), offset);
    CHECK(all.starts_with("dropped;0:9"));
    CHECK(all.ends_with(concat("0:999", line, ';')));
    CHECK(all.size() > (70 << 10));
}

TEST_CASE("output log: who reads while it is written over gets whole pieces in their order, or is told") {
    const TempDir dir;
    OutputLog log = make_log(dir, 64 << 10);
    const UniqueFd reader = open_log(dir, O_RDONLY);
    std::atomic<bool> written = false;
    std::thread writer([&] {
        for (int i = 0; i < 30'000; ++i) CHECK(log.append(0, concat(i, std::string(size_t(i % 4000), 'x'))));
        written = true;
    });
    uint64_t offset = 0;
    int next = 0, wrong = 0;
    bool dropped = false;
    const auto check = [&](size_t stream, std::string_view bytes) -> Result<void> {
        if (stream == kDropped) {
            dropped = true;
            return {};
        }
        const auto number = parse_number<int>(bytes.substr(0, bytes.find('x'))).value_or(-1);
        const bool whole = bytes == concat(number, std::string(size_t(std::max(number, 0) % 4000), 'x'));
        if (!whole || number < next || (number > next && !dropped)) ++wrong;
        next = number + 1;
        dropped = false;
        return {};
    };
    while (!written) CHECK(read_output(reader.get(), offset, check));
    writer.join();
    CHECK(read_output(reader.get(), offset, check));
    CHECK(wrong == 0);
    CHECK(next == 30'000);
}

TEST_CASE("output log: who follows it reads until the writer is gone") {
    const TempDir dir;
    UniqueFd file = open_log(dir, O_RDWR | O_CREAT);
    REQUIRE(::flock(file.get(), LOCK_EX) == 0);
    Result<OutputLog> made = OutputLog::create(std::move(file), 1 << 20);
    REQUIRE(made);
    std::thread writer([log = std::move(*made)]() mutable {
        for (int i = 0; i < 100; ++i) CHECK(log.append(1, "x"));
        const OutputLog gone = std::move(log);
    });
    const UniqueFd reader = open_log(dir, O_RDONLY);
    std::string text;
    CHECK(follow_output(reader.get(), [&](size_t, std::string_view bytes) -> Result<void> {
        text += bytes;
        return {};
    }));
    writer.join();
    CHECK(text == std::string(100, 'x'));
}
