// UniqueFd: one owner, one close, whatever is moved where.
#include "pinfold/unique_fd.hpp"

#include <fcntl.h>

#include <type_traits>
#include <utility>

#include "support/testing.hpp"

using pinfold::UniqueFd;

namespace {

int open_null() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

static_assert(!std::is_copy_constructible_v<UniqueFd>);
static_assert(!std::is_copy_assignable_v<UniqueFd>);
static_assert(std::is_nothrow_move_constructible_v<UniqueFd>);
static_assert(std::is_nothrow_move_assignable_v<UniqueFd>);
static_assert(!std::is_convertible_v<int, UniqueFd>);

}  // namespace

TEST_CASE("unique_fd: owns nothing at first") {
    const UniqueFd fd;
    CHECK_FALSE(fd);
    CHECK(fd.get() == -1);
}

TEST_CASE("unique_fd: descriptor 0 counts as owned, -1 does not") {
    UniqueFd zero(0);
    CHECK(zero);
    CHECK(zero.release() == 0);
    CHECK_FALSE(UniqueFd(-1));
}

TEST_CASE("unique_fd: closes at the end of the scope") {
    int number = -1;
    {
        const UniqueFd fd(open_null());
        number = fd.get();
        REQUIRE(is_open(number));
    }
    CHECK_FALSE(is_open(number));
}

TEST_CASE("unique_fd: a moved-from one owns nothing and closes nothing") {
    UniqueFd from(open_null());
    const int number = from.get();
    {
        const UniqueFd to(std::move(from));
        CHECK(to.get() == number);
        CHECK_FALSE(from);  // NOLINT(bugprone-use-after-move): the state after the move is what is tested
        CHECK(is_open(number));
    }
    CHECK_FALSE(is_open(number));
}

TEST_CASE("unique_fd: move assignment closes what was held and takes what is given") {
    UniqueFd to(open_null());
    UniqueFd from(open_null());
    const int held = to.get();
    const int given = from.get();
    to = std::move(from);
    CHECK_FALSE(is_open(held));
    CHECK(is_open(given));
    CHECK(to.get() == given);
    CHECK_FALSE(from);  // NOLINT(bugprone-use-after-move): the state after the move is what is tested
}

TEST_CASE("unique_fd: moving an empty one in closes what was held") {
    UniqueFd to(open_null());
    const int held = to.get();
    to = UniqueFd();
    CHECK_FALSE(is_open(held));
    CHECK_FALSE(to);
}

TEST_CASE("unique_fd: moved to itself it keeps its descriptor") {
    UniqueFd fd(open_null());
    const int number = fd.get();
    UniqueFd& same = fd;
    fd = std::move(same);
    CHECK(fd.get() == number);
    CHECK(is_open(number));
}

TEST_CASE("unique_fd: release gives the descriptor away, open") {
    UniqueFd fd(open_null());
    const int number = fd.release();
    CHECK_FALSE(fd);
    CHECK(is_open(number));
    ::close(number);
}

TEST_CASE("unique_fd: reset closes the old one and takes the new one") {
    UniqueFd fd(open_null());
    const int old = fd.get();
    const int next = open_null();
    fd.reset(next);
    CHECK_FALSE(is_open(old));
    CHECK(fd.get() == next);
    fd.reset();
    CHECK_FALSE(is_open(next));
    CHECK_FALSE(fd);
}
