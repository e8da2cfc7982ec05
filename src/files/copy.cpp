// Copies between the host and a container.
#include "files/copy.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "files/matches.hpp"
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

enum class Parents : uint8_t { as_they_are, made };

// The container's side of a copy in: what arrives is placed, and then said to be done.
WorkInside receiver_at(const std::string& inside, const std::string& name, const CopyLimits& limits,
                       Parents parents = Parents::as_they_are) {
    return [=](const RootFd& root, const OwnFds& own, const Stream& stream) -> Result<void> {
        const auto open = [&](const std::string& path, int flags) { return root.open(path, flags); };
        const auto open_or_make = [&](const std::string& path, int flags) -> Result<UniqueFd> {
            Result<UniqueFd> found = root.open(path, flags);
            const bool missing = !found && found.error().code == ENOENT && parents == Parents::made;
            return missing ? root.make_directory(path) : std::move(found);
        };
        Place place = TRY(find_place(inside, open, open_or_make));
        place.makes_parents = parents == Parents::made;
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

NextPiece pieces_of(std::string_view bytes) {
    return [bytes]() mutable -> Result<std::string_view> {
        const std::string_view piece = bytes.substr(0, Stream::kMaxBytes);
        bytes.remove_prefix(piece.size());
        return piece;
    };
}

bool names_link(const RootFd& root, const std::string& path) {
    const Result<UniqueFd> file = root.open(path, O_PATH | O_NOFOLLOW);
    struct stat info {};
    return file && ::fstat(file->get(), &info) == 0 && S_ISLNK(info.st_mode);
}

// The container's side of a copy of all that matches.
WorkInside sender_of_matches(const std::string& pattern, const CopyLimits& limits) {
    return [=](const RootFd& root, const OwnFds& own, const Stream& stream) -> Result<void> {
        CopyBudget budget(limits);
        const auto send = [&](const std::string& path) -> Result<void> {
            const UniqueFd top = TRY(root.open(path, O_PATH | O_NOFOLLOW));
            return send_one_of(top.get(), path, budget, own, stream);
        };
        std::vector<std::string> paths = TRY(find_matches(root, pattern));
        // Links last: they may lead to others of them.
        std::stable_partition(paths.begin(), paths.end(),
                              [&](const std::string& path) { return !names_link(root, path); });
        for (const std::string& path : paths) {
            TRY(stream.send({.word = Word::next, .name = path}));
            Result<void> sent = send(path);
            if (!sent && sent.error().code == EPIPE) return std::move(sent).error();
            if (!sent) stream.send_failure(std::move(sent).error().within("in the container"));
        }
        return stream.send({Word::done});
    };
}

// Nothing more can come.
bool ends_copy(const Error& error) { return error.code == EPIPE || error.code == ETIME || error.code == EINTR; }

// Whichever side fails, the other one tidies up before it ends.
template <class Send>
Result<CopySummary> send_in(const InsideOf& container, const WorkInside& receiver, const Send& send,
                            const CopySession& session = {}) {
    Helper helper = TRY(start_inside(container, receiver));
    helper.stream.give_up_at(session.deadline, session.interrupt);
    Result<CopySummary> sent = send(helper.stream);
    if (!sent) helper.stream.send_failure(sent.error());
    Result<Item> answer = helper.stream.receive();
    if (!sent && sent.error().code != EPIPE) return sent;
    if (!answer) return std::move(answer).error();
    return sent;
}

Result<CopySummary> copy_opened(const InsideOf& container, int source, const std::string& path,
                                const WorkInside& receiver, const CopyLimits& limits, const CopySession& session = {}) {
    const OwnFds own = TRY(OwnFds::open());
    return send_in(
        container, receiver, [&](const Stream& to) { return send_tree(source, path, inward(limits), own, to); },
        session);
}

}  // namespace

Result<CopySummary> copy_in(const InsideOf& container, const std::string& host_source, const std::string& inside,
                            const CopyLimits& limits) {
    const UniqueFd source = TRY(open_source(host_source));
    return copy_opened(container, source.get(), host_source, receiver_at(inside, last_name(host_source), limits),
                       limits);
}

Result<CopySummary> copy_in(const InsideOf& container, const OpenedSource& source, const std::string& inside,
                            const CopyLimits& limits, const CopySession& session) {
    return copy_opened(container, source.fd, source.path, receiver_at(inside, source.name, limits, Parents::made),
                       limits, session);
}

Result<CopySummary> copy_out(const InsideOf& container, const std::string& inside, const std::string& host_target,
                             const CopyLimits& limits) {
    const OwnFds own = TRY(OwnFds::open());
    const Place place = TRY(find_host_place(host_target));
    const Helper helper = TRY(start_inside(container, sender_of(inside, Wanted::anything, limits)));
    return receive_tree(place, last_name(inside), limits, own, helper.stream);
}

Result<CopySummary> copy_out(const InsideOf& container, const std::string& inside, int host_directory,
                             const std::string& name, const CopyLimits& limits, CopySession* session) {
    const OwnFds own = TRY(OwnFds::open());
    const bool into = name.ends_with('/');
    const Place place{TRY(own.reopen(host_directory, O_PATH | O_DIRECTORY)), name.substr(0, name.size() - into), into,
                      into};
    Helper helper = TRY(start_inside(container, sender_of(inside, Wanted::anything, limits)));
    if (session != nullptr) helper.stream.give_up_at(session->deadline, session->interrupt);
    return receive_tree(place, into ? last_name(inside) : "", limits, own, helper.stream, session);
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

Result<void> find_directory(const InsideOf& container, const std::string& inside, bool make) {
    const Helper helper = TRY(start_inside(container, [=](const RootFd& root, const OwnFds&, const Stream& stream) {
        const Result<UniqueFd> found = make ? root.make_directory(inside) : root.open(inside, O_PATH | O_DIRECTORY);
        return found ? stream.send({Word::done}) : Result<void>(found.error());
    }));
    TRY(helper.stream.receive());
    return {};
}

Result<uint64_t> copy_matches_out(const InsideOf& container, const std::string& pattern, const MatchTarget& target,
                                  const CopyLimits& limits, CopySession& session) {
    constexpr uint64_t kMostFailures = 100;
    const OwnFds own = TRY(OwnFds::open());
    Helper helper = TRY(start_inside(container, sender_of_matches(pattern, limits)));
    helper.stream.give_up_at(session.deadline, session.interrupt);
    CopyBudget budget(limits);
    Place place;
    uint64_t matches = 0, failures = 0;
    for (;;) {
        const Item item = TRY(helper.stream.receive_any());
        if (item.word == Word::done) return matches;
        if (item.word == Word::failed && matches == 0) return Stream::error_of(item);
        if (item.word != Word::next) continue;  // the rest of one that failed here
        const std::string path(item.name);
        if (++matches == 1) place.directory = TRY(target.open());
        place.name = last_name(path);
        const Result<void> copied = receive_one_of(place, budget, own, helper.stream, session);
        if (copied) continue;
        if (ends_copy(copied.error())) return copied.error();
        target.failed(path, copied.error());
        if (++failures == kMostFailures)
            return plain_error(concat(failures, " of the first ", matches, " matches failed: no more were tried"));
    }
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
    TRY(send_in(container, receiver_at(inside, "", limits),
                [&](const Stream& to) { return send_file(mode, pieces_of(bytes), limits, to); }));
    return {};
}

}  // namespace pinfold
