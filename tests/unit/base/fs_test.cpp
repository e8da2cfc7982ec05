// Whole reads and single writes, and errors that name the file.
#include "base/fs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using testing::TempDir;

namespace {

void create(const std::string& path, const std::string& text) {
    const Result<UniqueFd> fd = open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    REQUIRE(fd);
    REQUIRE(write_once(fd->get(), text, path));
}

}  // namespace

TEST_CASE("fs: an opened file does not leak into a program that is executed") {
    const Result<UniqueFd> fd = open_at(AT_FDCWD, "/dev/null", O_RDONLY);
    REQUIRE(fd);
    CHECK((::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("fs: opening a missing file names it and keeps the errno") {
    const Result<UniqueFd> fd = open_at(AT_FDCWD, "/nowhere/at/all", O_RDONLY);
    REQUIRE_FALSE(fd);
    CHECK(fd.error().code == ENOENT);
    CHECK(fd.error().message == "open /nowhere/at/all: does not exist (ENOENT)");
}

TEST_CASE("fs: open_at is relative to the directory it is given") {
    const TempDir dir;
    create(dir.file("inside"), "here");
    const Result<UniqueFd> handle = open_at(AT_FDCWD, dir.path(), O_PATH | O_DIRECTORY);
    REQUIRE(handle);
    const Result<UniqueFd> fd = open_at(handle->get(), "inside", O_RDONLY);
    REQUIRE(fd);
    CHECK(*read_all(fd->get(), "inside") == "here");
}

TEST_CASE("fs: files of every awkward size are read whole") {
    const TempDir dir;
    for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{1000000}}) {
        INFO(size);
        const std::string text(size, 'x');
        create(dir.file("data"), text);
        const Result<std::string> read = read_file(dir.file("data"));
        REQUIRE(read);
        CHECK((*read == text));  // doubled parentheses: a failure would print a megabyte
    }
}

TEST_CASE("fs: a file in /proc, whose size is given as 0, is read whole") {
    const Result<std::string> status = read_file("/proc/self/status");
    REQUIRE(status);
    CHECK(status->starts_with("Name:"));
    CHECK(status->ends_with("\n"));
}

TEST_CASE("fs: a pipe that delivers in pieces is read to its end") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const UniqueFd reader(ends[0]);
    const std::string piece(50000, 'p');
    std::thread writer([&piece, fd = UniqueFd(ends[1])] {
        for (int i = 0; i < 4; ++i) {
            if (::write(fd.get(), piece.data(), piece.size()) < 0) return;
        }
    });
    const Result<std::string> text = read_all(reader.get(), "pipe");
    writer.join();
    REQUIRE(text);
    CHECK(text->size() == 200000);
}

TEST_CASE("fs: reading a directory fails with its name") {
    const Result<std::string> text = read_file("/tmp");
    REQUIRE_FALSE(text);
    CHECK(text.error().code == EISDIR);
    CHECK(text.error().message.starts_with("read /tmp: "));
}

TEST_CASE("fs: of somebody else's files only regular ones are opened, and the others are named") {
    const TempDir dir;
    create(dir.file("file"), "text");
    REQUIRE(::mkfifo(dir.file("fifo").c_str(), 0600) == 0);
    REQUIRE(::symlink("file", dir.file("link").c_str()) == 0);
    CHECK(*read_regular(dir.file("file"), 4) == "text");
    CHECK(*read_regular(dir.file("link"), 4) == "text");
    const auto words = [&](const std::string& path) { return read_regular(path, 4).error().message; };
    CHECK(words(dir.file("fifo")) == dir.file("fifo") + " is a FIFO, not a regular file");
    CHECK(words("/dev/zero") == "/dev/zero is a device, not a regular file");
    CHECK(words(dir.path()) == dir.path() + " is a directory, not a regular file");
    CHECK(read_regular(dir.file("none"), 4).error().code == ENOENT);
    CHECK(open_regular(AT_FDCWD, dir.file("link"), O_NOFOLLOW).error().code == ELOOP);
}

TEST_CASE("fs: more than what is allowed is not read") {
    const TempDir dir;
    for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, size_t{100000}}) {
        INFO(size);
        create(dir.file("data"), std::string(size, 'x'));
        CHECK(read_regular(dir.file("data"), size)->size() == size);
        if (size == 0) continue;
        CHECK(read_regular(dir.file("data"), size - 1).error().message ==
              concat(dir.file("data"), " has ", size, " bytes, allowed: at most ", size - 1));
    }
    const UniqueFd zeros = open_at(AT_FDCWD, "/dev/zero", O_RDONLY).value();
    CHECK(read_at_most(zeros.get(), "input", 10000).error().message ==
          "input has more than 10000 bytes, allowed: at most 10000");
}

TEST_CASE("fs: write_file_at writes into an existing file and creates none") {
    const TempDir dir;
    create(dir.file("knob"), "");
    REQUIRE(write_file_at(AT_FDCWD, dir.file("knob"), "max"));
    CHECK(*read_file(dir.file("knob")) == "max");
    CHECK(write_file_at(AT_FDCWD, dir.file("other"), "max").error().code == ENOENT);
    CHECK(::access(dir.file("other").c_str(), F_OK) != 0);
}

TEST_CASE("fs: a write that the kernel refuses tells value and file") {
    const Result<UniqueFd> full = open_at(AT_FDCWD, "/dev/full", O_WRONLY);
    REQUIRE(full);
    const Result<void> written = write_once(full->get(), "50\n", "cpu.max");
    REQUIRE_FALSE(written);
    CHECK(written.error().code == ENOSPC);
    CHECK(written.error().message.starts_with("write '50\\x0a' to cpu.max: "));
}

TEST_CASE("fs: a write of which only a part is taken is an error") {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    const UniqueFd reader(ends[0]);
    const UniqueFd writer(ends[1]);
    const Result<void> written = write_once(writer.get(), std::string(1 << 20, 'x'), "the pipe");
    REQUIRE_FALSE(written);
    CHECK(written.error().message == "write to the pipe: only a part was taken");
}
