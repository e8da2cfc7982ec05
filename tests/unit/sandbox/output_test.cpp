// What a job prints, with real pipes: limits, order, and readers that do not read.
#include "sandbox/output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <numeric>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

constexpr size_t kPipeSize = 64 << 10;

struct Ends {
    UniqueFd from;
    UniqueFd to;
};

Ends make_ends() {
    Result<Pipe> pipe = make_pipe(" for a test");
    REQUIRE(pipe);
    return {std::move(pipe->from), std::move(pipe->to)};
}

// Bytes of which no two neighbours are the same, so that one that is lost or moved is seen.
std::string pattern(size_t size) {
    std::string bytes(size, '\0');
    std::iota(bytes.begin(), bytes.end(), '\0');
    return bytes;
}

void put(int fd, std::string_view bytes) { REQUIRE(::write(fd, bytes.data(), bytes.size()) == ssize_t(bytes.size())); }

std::string get(int fd, size_t most) {
    std::string bytes(most, '\0');
    const ssize_t count = ::read(fd, bytes.data(), most);
    bytes.resize(count > 0 ? size_t(count) : 0);
    return bytes;
}

// All that the output finds in its pipes, as its owner's loop would have it.
void serve_all(Output& output) {
    std::array<pollfd, Output::kSlots> slots{};
    for (;;) {
        output.prepare(slots);
        if (::poll(slots.data(), slots.size(), 0) <= 0) return;
        output.serve(slots);
    }
}

// Of a caller whose streams take it: all that `text` becomes on its way through.
std::string through(Flow& flow, UniqueFd& write_end, const std::string& text, int reader) {
    std::string got;
    size_t sent = 0;
    while (!flow.is_over()) {
        if (sent < text.size()) {
            const size_t size = std::min<size_t>(4096, text.size() - sent);
            put(write_end.get(), std::string_view(text).substr(sent, size));
            sent += size;
        } else {
            write_end.reset();
        }
        pollfd slot = flow.slot();
        while (::poll(&slot, 1, 0) == 1) {
            flow.move(SIZE_MAX);
            slot = flow.slot();
        }
        if (pollfd readable{reader, POLLIN, 0}; ::poll(&readable, 1, 0) == 1) got += get(reader, kPipeSize);
    }
    return got;
}

class IgnoresBrokenPipes {
public:
    IgnoresBrokenPipes() : before_(::signal(SIGPIPE, SIG_IGN)) {}
    ~IgnoresBrokenPipes() { ::signal(SIGPIPE, before_); }
    IgnoresBrokenPipes(const IgnoresBrokenPipes&) = delete;
    IgnoresBrokenPipes& operator=(const IgnoresBrokenPipes&) = delete;

private:
    sighandler_t before_;
};

}  // namespace

TEST_CASE("output: both streams have one limit together, and not a byte of it is lost") {
    for (const size_t limit : {size_t{1}, size_t{1000}, kPipeSize + 1}) {
        CAPTURE(limit);
        Result<Output> output = Output::create({.capture = true, .limit = limit});
        REQUIRE(output);
        UniqueFd out = output->take_write_end(0), err = output->take_write_end(1);
        put(out.get(), pattern(limit / 2));
        serve_all(*output);
        put(err.get(), pattern(limit - limit / 2));
        serve_all(*output);
        CHECK_FALSE(output->over_limit());  // as many as are allowed
        put(out.get(), "x");
        serve_all(*output);
        CHECK(output->over_limit());
        CHECK(output->take_text(0) == pattern(limit / 2));
        CHECK(output->take_text(1) == pattern(limit - limit / 2));
        put(out.get(), pattern(kPipeSize));  // and nobody waits for a reader
        serve_all(*output);
        put(out.get(), pattern(kPipeSize));
    }
}

TEST_CASE("output: what is kept is bounded, whoever asks for more") {
    const Result<Output> much = Output::create({.capture = true, .limit = kMostCaptured + 1});
    REQUIRE_FALSE(much);
    CHECK(much.error().message.find("268435456") != std::string::npos);
    CHECK(Output::create({.capture = true, .limit = kMostCaptured}));
    CHECK(Output::create({.limit = kMostCaptured + 1}));  // what is passed on takes no memory
}

TEST_CASE("output: what was written before the end arrives, and is not called cut") {
    Result<Output> output = Output::create({.capture = true});
    REQUIRE(output);
    {
        const UniqueFd out = output->take_write_end(0), err = output->take_write_end(1);
        put(out.get(), "last words");
    }
    constexpr int64_t kLong = 60'000'000'000;
    output->finish(monotonic_ns() + kLong, -1);
    CHECK(output->take_text(0) == "last words");
    CHECK_FALSE(output->cut());
    CHECK_FALSE(output->over_limit());
}

TEST_CASE("flow: every byte gets through in its order, whatever the caller's stream is") {
    const std::string text = pattern(300'000);
    SUBCASE("a pipe") {
        Ends job = make_ends(), caller = make_ends();
        Result<Flow> flow = Flow::to_caller(std::move(job.from), caller.to.get());
        REQUIRE(flow);
        std::string got = through(*flow, job.to, text, caller.from.get());
        caller.to.reset();
        got += get(caller.from.get(), kPipeSize);
        CHECK(got == text);
    }
    SUBCASE("a pipe that is open for appending, which the kernel does not splice to") {
        Ends job = make_ends(), caller = make_ends();
        REQUIRE(::fcntl(caller.to.get(), F_SETFL, O_APPEND) == 0);
        Result<Flow> flow = Flow::to_caller(std::move(job.from), caller.to.get());
        REQUIRE(flow);
        std::string got = through(*flow, job.to, text, caller.from.get());
        caller.to.reset();
        got += get(caller.from.get(), kPipeSize);
        CHECK(got == text);
        CHECK((::fcntl(caller.from.get(), F_GETFL) & O_NONBLOCK) == 0);  // shared with others: left alone
    }
    SUBCASE("a socket") {
        Ends job = make_ends();
        int ends[2];
        REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        const UniqueFd reader(ends[0]);
        UniqueFd writer(ends[1]);
        Result<Flow> flow = Flow::to_caller(std::move(job.from), writer.get());
        REQUIRE(flow);
        std::string got = through(*flow, job.to, text, reader.get());
        writer.reset();
        while (got.size() < text.size()) {
            const std::string more = get(reader.get(), kPipeSize);
            if (more.empty()) break;
            got += more;
        }
        CHECK(got == text);
    }
    SUBCASE("a file") {
        const TempDir dir;
        Ends job = make_ends();
        const UniqueFd file(::open(dir.file("out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
        Result<Flow> flow = Flow::to_caller(std::move(job.from), file.get());
        REQUIRE(flow);
        const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        through(*flow, job.to, text, nothing.get());
        CHECK(read_file(dir.file("out")).value() == text);
    }
}

TEST_CASE("flow: a reader that does not read holds up nobody but the writer, and gets all in the end") {
    Ends job = make_ends(), caller = make_ends();
    REQUIRE(::fcntl(caller.to.get(), F_SETPIPE_SZ, 4096) == 4096);
    Result<Flow> flow = Flow::to_caller(std::move(job.from), caller.to.get());
    REQUIRE(flow);
    const std::string text = pattern(10'000);
    put(job.to.get(), text);
    while (!flow->is_held_up()) flow->move(SIZE_MAX);  // and none of these waits
    CHECK(flow->slot().fd == caller.to.get());
    CHECK(flow->slot().events == POLLOUT);
    std::string got;
    while (got.size() < text.size()) {
        got += get(caller.from.get(), 4096);
        flow->move(SIZE_MAX);
    }
    CHECK(got == text);
    CHECK_FALSE(flow->is_over());
}

TEST_CASE("flow: no more is taken than there is room for") {
    Ends job = make_ends(), caller = make_ends();
    Result<Flow> flow = Flow::to_caller(std::move(job.from), caller.to.get());
    REQUIRE(flow);
    put(job.to.get(), pattern(100));
    CHECK(flow->move(30) == 30);
    CHECK(get(caller.from.get(), 100) == pattern(30));
    CHECK(flow->move(0) == 0);
    CHECK_FALSE(flow->is_over());  // nothing was asked for: that is no end
}

TEST_CASE("flow: a reader that has gone ends it, and nothing counts as lost; a full disk does") {
    const IgnoresBrokenPipes ignores;
    Ends job = make_ends(), caller = make_ends();
    Result<Flow> flow = Flow::to_caller(std::move(job.from), caller.to.get());
    REQUIRE(flow);
    caller.from.reset();
    put(job.to.get(), "x");
    flow->move(SIZE_MAX);
    CHECK(flow->is_over());
    CHECK(flow->lost() == 0);

    Ends other = make_ends();
    const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
    Result<Flow> to_full = Flow::to_caller(std::move(other.from), full.get());
    REQUIRE(to_full);
    put(other.to.get(), "x");
    to_full->move(SIZE_MAX);
    CHECK(to_full->is_over());
    CHECK(to_full->lost() == ENOSPC);
}
