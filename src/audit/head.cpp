// The file beside the log that says how far it goes.
#include "audit/head.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"

namespace pinfold {

namespace {

constexpr size_t kLength = 256;  // two hashes and a number are less

}  // namespace

bool Head::is_at(const ChainEnd& other) const {
    return other == end || (!next.empty() && other == ChainEnd{end.seq + 1, next});
}

Result<Head> read_head(const std::string& log) {
    const std::string name = log + ".head";
    const Result<UniqueFd> file = open_regular(AT_FDCWD, name);
    if (!file && file.error().code == ENOENT) return Head{};
    if (!file) return file.error();
    // Of a file that somebody has made longer, only this part is ever written again.
    char text[kLength];
    const ssize_t size = ::read(file->get(), text, sizeof text);
    if (size < 0) return errno_error(concat("read ", name));
    const Result<Json> json = parse_json({text, size_t(size)}, log);
    if (!json) return Head{};
    return Head{{json->number("seq"), json->text("hash")}, json->text("next")};
}

// In place, always of the same length and within one sector: whoever dies, the file holds the old text or the new one.
// (To replace the file by a new one costs a hundred times as much, since ext4 then waits for the disk.)
Result<void> write_head(const std::string& log, const Head& head) {
    const std::string name = log + ".head";
    JsonObject object;
    object.add("seq", head.end.seq).add_text("hash", head.end.hash);
    if (!head.next.empty()) object.add_text("next", head.next);
    std::string text = object.text();
    text.resize(kLength - 1, ' ');
    const UniqueFd file = TRY(open_at(AT_FDCWD, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600));
    return write_once(file.get(), text + "\n", name);
}

}  // namespace pinfold
