// The end of an audit log, read from the end.
#include "audit/tail.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr size_t kFirstPiece = 16384;

Result<std::string> read_piece(int fd, size_t offset, size_t size, const std::string& name) {
    std::string piece(size, '\0');
    for (size_t used = 0; used < size;) {
        const ssize_t got = ::pread(fd, piece.data() + used, size - used, off_t(offset + used));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return errno_error(got < 0 ? errno : EIO, concat("read ", name));
        used += size_t(got);
    }
    return piece;
}

// The last line that is whole and in order. What is before the first newline is one only at the start of the file.
std::optional<Tail> last_line(std::string_view piece, bool is_start) {
    constexpr size_t kNone = std::string_view::npos;
    for (size_t end = piece.size();;) {
        const size_t before = end == 0 ? kNone : piece.rfind('\n', end - 1);
        if (before == kNone && !is_start) return std::nullopt;
        const size_t begin = before == kNone ? 0 : before + 1;
        const std::optional<AuditRecord> record = parse_line(piece.substr(begin, end - begin));
        if (record) return Tail{record->end, std::string(piece.substr(std::min(end + 1, piece.size()))), false};
        if (before == kNone) return std::nullopt;
        end = before;
    }
}

}  // namespace

Result<Tail> read_tail(int fd, const std::string& name) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error(concat("stat ", name));
    const auto size = size_t(info.st_size);
    for (size_t length = std::min(size, kFirstPiece);; length = std::min(size, length * 4)) {
        std::string piece = TRY(read_piece(fd, size - length, length, name));
        const bool open = !piece.empty() && !piece.ends_with('\n');
        std::optional<Tail> tail = last_line(piece, length == size);
        if (!tail && length == size) tail = Tail{{}, std::move(piece), false};
        if (!tail) continue;
        tail->open = open;
        return std::move(*tail);
    }
}

}  // namespace pinfold
