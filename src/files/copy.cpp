// Copies between the host and a container.
#include "files/copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "files/receive_tree.hpp"
#include "files/send_tree.hpp"

namespace pinfold {

namespace {

constexpr unsigned kStreamMode = 0644;

Error is_link(const std::string& path) {
    return Error{ELOOP, concat(quoted(path), " is a symbolic link"),
                 "name what it leads to; a directory may also be meant by a slash at the end"};
}

// Of the host.
Result<UniqueFd> open_source(const std::string& path) {
    UniqueFd fd = TRY(open_at(AT_FDCWD, path, O_PATH | O_NOFOLLOW));
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return errno_error(concat("stat ", quoted(path)));
    if (S_ISLNK(info.st_mode)) return is_link(path);
    return fd;
}

Result<Place> find_host_place(const std::string& path) {
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) return is_link(path);
    // A link that comes after the look is not followed, either.
    return find_place(path,
                      [](const std::string& one, int flags) { return open_at(AT_FDCWD, one, flags | O_NOFOLLOW); });
}

// In there, a link leads to nothing but the container's own.
CopyLimits inward(CopyLimits limits) {
    limits.outward_links = true;
    return limits;
}

// The container's side of a copy in: what arrives is placed, and then said to be done.
WorkInside receiver_at(const std::string& inside, const std::string& name, const CopyLimits& limits) {
    return [=](const RootFd& root, const OwnFds& own, const Stream& stream) -> Result<void> {
        const auto open = [&](const std::string& path, int flags) { return root.open(path, flags); };
        const Place place = TRY(find_place(inside, open));
        TRY(receive_tree(place, name, inward(limits), own, stream));
        return stream.send({Word::done});
    };
}

Result<void> require_file(int fd, const std::string& path) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error(concat("stat ", quoted(path)));
    if (S_ISREG(info.st_mode)) return {};
    return Error{S_ISDIR(info.st_mode) ? EISDIR : EINVAL, concat(quoted(path), " is a ", file_kind(info.st_mode)), {}};
}

enum class Wanted : uint8_t { anything, one_file };

// The container's side of a copy out.
WorkInside sender_of(const std::string& inside, Wanted wanted, const CopyLimits& limits) {
    return [=](const RootFd& root, const OwnFds& own, const Stream& stream) -> Result<void> {
        const UniqueFd top = TRY(root.open(inside, O_PATH));
        if (wanted == Wanted::one_file) TRY(require_file(top.get(), inside));
        TRY(send_tree(top.get(), inside, limits, own, stream));
        return {};
    };
}

// Whichever side fails, the other one tidies up before it ends.
template <class Send>
Result<CopySummary> send_in(const InsideOf& container, const WorkInside& receiver, const Send& send) {
    const Helper helper = TRY(start_inside(container, receiver));
    Result<CopySummary> sent = send(helper.stream);
    if (!sent) helper.stream.send_failure(sent.error());
    Result<Item> answer = helper.stream.receive();
    if (!sent && sent.error().code != EPIPE) return sent;
    if (!answer) return std::move(answer).error();
    return sent;
}

Result<CopySummary> copy_opened(const InsideOf& container, int source, const std::string& path,
                                const WorkInside& receiver, const CopyLimits& limits) {
    const OwnFds own = TRY(OwnFds::open());
    return send_in(container, receiver,
                   [&](const Stream& to) { return send_tree(source, path, inward(limits), own, to); });
}

}  // namespace

Result<CopySummary> copy_in(const InsideOf& container, const std::string& host_source, const std::string& inside,
                            const CopyLimits& limits) {
    const UniqueFd source = TRY(open_source(host_source));
    return copy_opened(container, source.get(), host_source, receiver_at(inside, last_name(host_source), limits),
                       limits);
}

Result<CopySummary> copy_in(const InsideOf& container, int host_source, const std::string& name,
                            const std::string& inside, const CopyLimits& limits) {
    return copy_opened(container, host_source, name, receiver_at(inside, name, limits), limits);
}

Result<CopySummary> copy_out(const InsideOf& container, const std::string& inside, const std::string& host_target,
                             const CopyLimits& limits) {
    const OwnFds own = TRY(OwnFds::open());
    const Place place = TRY(find_host_place(host_target));
    const Helper helper = TRY(start_inside(container, sender_of(inside, Wanted::anything, limits)));
    return receive_tree(place, last_name(inside), limits, own, helper.stream);
}

Result<CopySummary> copy_out(const InsideOf& container, const std::string& inside, int host_directory,
                             const std::string& name, const CopyLimits& limits) {
    const OwnFds own = TRY(OwnFds::open());
    const Place place{TRY(own.reopen(host_directory, O_PATH | O_DIRECTORY)), name};
    const Helper helper = TRY(start_inside(container, sender_of(inside, Wanted::anything, limits)));
    return receive_tree(place, "", limits, own, helper.stream);
}

Result<CopySummary> stream_in(const InsideOf& container, int from, const std::string& inside,
                              const CopyLimits& limits) {
    std::string buffer;
    return send_in(container, receiver_at(inside, "", limits),
                   [&](const Stream& to) { return send_file(kStreamMode, pieces_of(from, buffer), limits, to); });
}

Result<CopySummary> stream_out(const InsideOf& container, const std::string& inside, int to, const CopyLimits& limits) {
    const Helper helper = TRY(start_inside(container, sender_of(inside, Wanted::one_file, limits)));
    return receive_file([to](std::string_view bytes) { return write_all(to, bytes, "the copy"); }, limits,
                        helper.stream);
}

Result<std::string> read_inside(const InsideOf& container, const std::string& inside, uint64_t max) {
    const CopyLimits limits{.bytes = max};
    std::string text;
    const auto take = [&](std::string_view bytes) {
        text += bytes;
        return Result<void>();
    };
    const Helper helper = TRY(start_inside(container, sender_of(inside, Wanted::one_file, limits)));
    TRY(receive_file(take, limits, helper.stream));
    return text;
}

Result<void> write_inside(const InsideOf& container, const std::string& inside, std::string_view bytes, unsigned mode) {
    const CopyLimits limits{.bytes = bytes.size()};
    const NextPiece next = [&]() -> Result<std::string_view> {
        const std::string_view piece = bytes.substr(0, Stream::kMaxBytes);
        bytes.remove_prefix(piece.size());
        return piece;
    };
    TRY(send_in(container, receiver_at(inside, "", limits),
                [&](const Stream& to) { return send_file(mode, next, limits, to); }));
    return {};
}

}  // namespace pinfold
