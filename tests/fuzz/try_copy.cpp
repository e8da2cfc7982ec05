// The receiving side of a copy, against a sender that says anything. The input is a list of messages: length, word,
// mode, length of the name, and the rest.
#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/fs.hpp"
#include "files/receive_tree.hpp"
#include "fuzz/target.hpp"
#include "support/temp_dir.hpp"

namespace pinfold::fuzz {

namespace {

namespace fs = std::filesystem;

// As stream.cpp has it.
struct Header {
    uint8_t word;
    uint32_t mode;
    int32_t code;
    uint32_t name_length;
};

// False: there is no more, or the socket is full.
bool send_next(int socket, std::string_view& input) {
    if (input.size() < 4) return false;
    const auto byte = [&](size_t at) { return static_cast<unsigned char>(input[at]); };
    const std::string_view rest = input.substr(4, byte(0));
    const Header header{byte(1), byte(2) * 2U, 0, byte(3)};
    std::string packet(sizeof header + rest.size(), '\0');
    std::memcpy(packet.data(), &header, sizeof header);
    std::ranges::copy(rest, packet.begin() + sizeof header);
    input.remove_prefix(4 + rest.size());
    return ::send(socket, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

void check_confined(const testing::TempDir& dir) {
    const Result<std::string> victim = read_file(dir.file("victim"));
    must_hold(victim && *victim == "old", "a copy changes nothing outside");
    must_hold(std::distance(fs::directory_iterator(dir.path()), {}) == 2, "a copy makes nothing outside");
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(dir.file("target"))) {
        must_hold(entry.is_symlink() || entry.is_directory() || entry.is_regular_file(), "a copy holds no devices");
    }
}

}  // namespace

void try_copy(std::string_view input) {
    static const testing::TempDir dir;
    static const OwnFds own = std::move(OwnFds::open()).value();
    fs::create_directory(dir.file("target"));
    std::ofstream(dir.file("victim")) << "old";
    Result<std::pair<Stream, Stream>> ends = Stream::make_pair();
    while (send_next(ends->first.fd(), input)) continue;
    { const Stream ended = std::move(ends->first); }
    const Place place{std::move(open_at(AT_FDCWD, dir.file("target"), O_PATH | O_DIRECTORY)).value(), "", true};
    const CopyLimits limits{.bytes = 4096, .files = 16};
    const Result<CopySummary> received = receive_tree(place, "", limits, own, ends->second);
    if (!received) check_refusal(received.error());
    else must_hold(received->bytes <= limits.bytes && received->files <= limits.files, "a copy keeps to its limits");
    check_confined(dir);
    fs::remove_all(dir.file("target"));
}

}  // namespace pinfold::fuzz
