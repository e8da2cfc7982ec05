// The sending side of a copy. Each file is opened by O_PATH first, without following anything, and all that happens to
// it happens through that descriptor: whatever takes its name meanwhile is not touched.
#include "files/send_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

struct Node {
    int fd;
    std::string name;  // as the receiver is told
    std::string path;  // as errors have it
    unsigned depth;
    struct stat info;
};

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

Result<Directory> list(const Node& node) {
    UniqueFd readable = TRY_IN(quoted(node.path), open_at(node.fd, ".", O_RDONLY | O_DIRECTORY));
    DIR* stream = ::fdopendir(readable.get());
    if (stream == nullptr) return errno_error(concat("list ", quoted(node.path)));
    readable.release();  // closedir closes it
    return Directory(stream, ::closedir);
}

Result<std::string> target_of(const Node& node) {
    std::string target = link_target("", node.fd);
    if (target.empty()) return errno_error(concat("read link ", quoted(node.path)));
    return target;
}

Result<void> send_pieces(const NextPiece& next, CopyBudget& budget, const Stream& to) {
    for (;;) {
        const std::string_view piece = TRY(next());
        if (piece.empty()) return to.send({Word::up});
        TRY(budget.add_bytes(piece.size()));
        TRY(to.send({.word = Word::bytes, .text = piece}));
    }
}

// Without a stream it only looks and counts.
class Walk {
public:
    Walk(CopyBudget& budget, const OwnFds& own, const Stream* to) : budget_(budget), own_(own), to_(to) {}

    Result<void> run(int top, const std::string& path) { return visit({top, "", path, 0, {}}); }

private:
    Result<void> visit(Node node) {
        if (::fstat(node.fd, &node.info) != 0) return errno_error(concat("stat ", quoted(node.path)));
        TRY_IN(quoted(node.path), budget_.add_file(node.depth));
        switch (node.info.st_mode & S_IFMT) {
            case S_IFDIR: return visit_directory(node);
            case S_IFREG: return visit_file(node);
            case S_IFLNK: return visit_link(node);
            default: break;
        }
        return plain_error(concat(quoted(node.path), " is a ", file_kind(node.info.st_mode)))
            .with_hint("only files, directories and symbolic links are copied");
    }

    Result<void> visit_directory(const Node& node) {
        const Directory directory = TRY(list(node));
        TRY(send({Word::directory, node.info.st_mode & 01777, node.name, {}}));
        while (const dirent* entry = ::readdir(directory.get())) {
            const std::string name = entry->d_name;
            if (name != "." && name != "..") TRY(visit_entry(node, name));
        }
        return send({Word::up});
    }

    Result<void> visit_entry(const Node& parent, const std::string& name) {
        const UniqueFd fd(::openat(parent.fd, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
        const std::string path = concat(parent.path, parent.path.ends_with('/') ? "" : "/", name);
        if (!fd && errno == ENOENT) return {};  // removed since the directory was listed
        if (!fd) return errno_error(concat("open ", quoted(path)));
        return visit({fd.get(), name, path, parent.depth + 1, {}});
    }

    Result<void> visit_file(const Node& node) {
        if (to_ == nullptr) {
            TRY_IN(quoted(node.path), budget_.add_bytes(uint64_t(node.info.st_size)));
            return {};
        }
        // Not to wait for who holds a lease on it (fcntl(2), F_SETLEASE): the kernel lets that take 45 seconds a file.
        Result<UniqueFd> readable = own_.reopen(node.fd, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        if (!readable && readable.error().code == EWOULDBLOCK)
            return plain_error(concat(quoted(node.path), ": a process holds a lease on it"))
                .with_hint("it can be copied once that process has ended, or has given up its lease");
        if (!readable) return std::move(readable).error().within(quoted(node.path));
        TRY(send({Word::file, node.info.st_mode & 0777, node.name, {}}));
        TRY_IN(quoted(node.path), send_pieces(pieces_of(readable->get(), buffer_), budget_, *to_));
        return {};
    }

    Result<void> visit_link(const Node& node) {
        const std::string target = TRY(target_of(node));
        // At the top it is one of several: who receives them knows what else there is.
        if (node.depth > 0) TRY_IN(quoted(node.path), budget_.allow_link(target, node.depth - 1));
        return send({Word::link, 0, node.name, target});
    }

    Result<void> send(const Item& item) { return to_ == nullptr ? Result<void>() : to_->send(item); }

    CopyBudget& budget_;
    const OwnFds& own_;
    const Stream* to_;
    std::string buffer_;
};

Result<void> look_and_send(int top, const std::string& path, CopyBudget& budget, const OwnFds& own, const Stream& to) {
    CopyBudget looked_at = budget;
    const Result<void> looked = Walk(looked_at, own, nullptr).run(top, path);
    if (!looked) {
        budget = looked_at;
        return looked.error();
    }
    return Walk(budget, own, &to).run(top, path);
}

}  // namespace

Result<CopySummary> send_tree(int top, const std::string& path, const CopyLimits& limits, const OwnFds& own,
                              const Stream& to) {
    CopyBudget budget(limits);
    TRY(look_and_send(top, path, budget, own, to));
    return budget.used();
}

Result<void> send_one_of(int top, const std::string& path, CopyBudget& budget, const OwnFds& own, const Stream& to) {
    return look_and_send(top, path, budget, own, to);
}

Result<CopySummary> send_file(unsigned mode, const NextPiece& next, const CopyLimits& limits, const Stream& to) {
    CopyBudget budget(limits);
    TRY(budget.add_file(0));
    TRY(to.send({.word = Word::file, .mode = mode & 0777}));
    TRY(send_pieces(next, budget, to));
    return budget.used();
}

NextPiece pieces_of(int fd, std::string& buffer) {
    buffer.resize(Stream::kMaxBytes);
    return [fd, &buffer]() -> Result<std::string_view> {
        for (;;) {
            const ssize_t got = ::read(fd, buffer.data(), buffer.size());
            if (got >= 0) return std::string_view(buffer.data(), size_t(got));
            if (errno != EINTR) return errno_error("read");
        }
    };
}

}  // namespace pinfold
