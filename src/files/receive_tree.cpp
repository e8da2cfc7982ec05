// The receiving side of a copy. It believes nothing that it is told: a name is one component, a link stays in the tree,
// and what is made is made below descriptors that it holds.
#include "files/receive_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

std::string_view without_slashes(std::string_view path) {
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    return path;
}

// With a slash at its end: should it be a link, it is meant to be followed.
std::string parent_of(std::string_view path) {
    path = without_slashes(path);
    const size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? "./" : std::string(path.substr(0, slash + 1));
}

bool is_one_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

Error no_name(std::string_view name) { return plain_error(concat(quoted(name), " is not the name of a file")); }

Error disagreement() { return plain_error("the two sides of the copy disagree on what comes next"); }

Result<UniqueFd> open_existing_directory(int parent, const std::string& name) {
    UniqueFd fd(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd) return fd;
    if (errno == ENOTDIR) return Error{ENOTDIR, concat(quoted(name), " is there already and is not a directory"), {}};
    return errno_error(concat("open directory ", quoted(name)));
}

class Receiver {
public:
    Receiver(CopyBudget& budget, const OwnFds& own, const Stream& from, CopySession* session)
        : budget_(budget), own_(own), from_(from), session_(session) {}

    Result<void> receive(const Place& place, const std::string& source_name) {
        const Item top = TRY(from_.receive());
        if (top.word == Word::file) return receive_top_file(place, source_name, top.mode);
        if (top.word == Word::directory) return receive_top_directory(place, source_name, top.mode);
        return disagreement();
    }

    Result<void> receive_one_of(const Place& place) {
        if (!is_one_name(place.name)) return no_name(place.name);
        const Item top = TRY(from_.receive());
        const int directory = place.directory.get();
        if (top.word == Word::directory) return make_directory(directory, place.name, top.mode, 0);
        if (top.word == Word::file) return make_file(directory, place.name, top.mode, 0);
        if (top.word != Word::link) return disagreement();
        const std::string target(top.text);
        if (!was_copied(directory, target)) TRY_IN(quoted(place.name), budget_.allow_outward(target));
        return place_link(directory, place.name, target, 0);
    }

private:
    Result<void> receive_top_file(const Place& place, const std::string& source_name, unsigned mode) {
        if (place.for_directories && !place.name.empty()) {
            if (!place.makes_parents) return Error{ENOTDIR, concat(quoted(place.name), " is not a directory"), {}};
            const UniqueFd parent = TRY(make_parent(place));
            return is_one_name(source_name) ? make_file(parent.get(), source_name, mode, 0) : no_name(source_name);
        }
        const std::string& name = place.name.empty() ? source_name : place.name;
        if (name.empty()) return Error{EISDIR, "the target is a directory", "name a file in it"};
        if (!is_one_name(name)) return no_name(name);
        return make_file(place.directory.get(), name, mode, 0);
    }

    Result<void> receive_top_directory(const Place& place, const std::string& source_name, unsigned mode) {
        const std::string& name = place.name.empty() ? source_name : place.name;
        if (name.empty()) return fill(place.directory.get(), 0);
        if (!is_one_name(name)) return no_name(name);
        return make_directory(place.directory.get(), name, mode & 0777, 0);  // it may be a /tmp, and is none any more
    }

    static Result<UniqueFd> make_parent(const Place& place) {
        if (::mkdirat(place.directory.get(), place.name.c_str(), 0755) != 0)
            return errno_error(concat("make directory ", quoted(place.name)));
        return open_existing_directory(place.directory.get(), place.name);
    }

    Result<void> make_file(int directory, const std::string& name, unsigned mode, unsigned depth) {
        TRY(budget_.add_file(depth));
        TRY(check_replaceable(directory, name));
        TRY(require_older(directory, name));
        NewFile file = TRY_IN(quoted(name), NewFile::create(directory, mode & 0777));
        for (;;) {
            const Item item = TRY(from_.receive());
            if (item.word == Word::up) break;
            if (item.word != Word::bytes) return disagreement();
            TRY_IN(quoted(name), budget_.add_bytes(item.text.size()));
            TRY_IN(quoted(name), file.append(item.text));
        }
        TRY(file.commit(name, own_));
        remember(directory, name);
        return {};
    }

    // Whether a link leads to what has come from the same sandbox, and not to a file of the host's beside it.
    bool was_copied(int directory, std::string_view target) const {
        const std::string first(target.substr(0, target.find('/')));
        struct stat info {};
        return is_one_name(first) && ::fstatat(directory, first.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
               session_->made.contains({info.st_dev, info.st_ino});
    }

    // Two sources with one target: the first one's copy would be lost.
    Result<void> require_older(int directory, const std::string& name) const {
        struct stat info {};
        if (session_ == nullptr || ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
        if (!session_->made.contains({info.st_dev, info.st_ino})) return {};
        return Error{EEXIST, concat(quoted(name), " was copied there just now, from another place"),
                     "give each a directory of its own"};
    }

    void remember(int directory, const std::string& name) const {
        struct stat info {};
        if (session_ == nullptr || ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return;
        session_->made.insert({info.st_dev, info.st_ino});
    }

    // Ours to write to as long as it is filled, whatever its mode will be. One that is there keeps its mode.
    Result<void> make_directory(int parent, const std::string& name, unsigned mode, unsigned depth) {
        const bool made = ::mkdirat(parent, name.c_str(), (mode & 01777) | 0700) == 0;
        if (!made && errno != EEXIST) return errno_error(concat("make directory ", quoted(name)));
        const UniqueFd directory = TRY(open_existing_directory(parent, name));
        if (made) remember(parent, name);
        TRY(fill(directory.get(), depth));
        return made && (mode & 0700) != 0700 ? restrict_owner(directory.get(), name, mode) : Result<void>();
    }

    Result<void> restrict_owner(int directory, const std::string& name, unsigned mode) {
        struct stat info {};
        const UniqueFd usable = TRY(own_.reopen(directory, O_RDONLY | O_DIRECTORY));
        if (::fstat(usable.get(), &info) != 0 || ::fchmod(usable.get(), info.st_mode & (mode | 07077)) != 0)
            return errno_error(concat("set the mode of ", quoted(name)));
        return {};
    }

    // Depth: how many directories there are between this one and the top.
    Result<void> fill(int directory, unsigned depth) {
        TRY(budget_.add_file(depth));
        for (;;) {
            const Item item = TRY(from_.receive());
            if (item.word == Word::up) return {};
            if (!is_one_name(item.name)) return no_name(item.name);
            TRY(receive_entry(directory, std::string(item.name), item, depth));
        }
    }

    Result<void> receive_entry(int directory, const std::string& name, const Item& item, unsigned depth) {
        if (item.word == Word::directory) return make_directory(directory, name, item.mode, depth + 1);
        if (item.word == Word::file) return make_file(directory, name, item.mode, depth + 1);
        if (item.word == Word::link) return place_link(directory, name, std::string(item.text), depth);
        return disagreement();
    }

    Result<void> place_link(int directory, const std::string& name, const std::string& target, unsigned depth) {
        TRY(budget_.add_file(depth + 1));
        TRY_IN(quoted(name), budget_.allow_link(target, depth));
        TRY(require_older(directory, name));
        TRY(make_link(directory, target, name));
        remember(directory, name);
        return {};
    }

    CopyBudget& budget_;
    const OwnFds& own_;
    const Stream& from_;
    CopySession* session_;
};

}  // namespace

std::string last_name(std::string_view path) {
    path = without_slashes(path);
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return is_one_name(name) ? std::string(name) : "";
}

Result<Place> find_place(const std::string& path, const OpenPath& open) { return find_place(path, open, open); }

Result<Place> find_place(const std::string& path, const OpenPath& open, const OpenPath& open_parent) {
    Result<UniqueFd> directory = open(path, O_PATH | O_DIRECTORY);
    if (directory) return Place{std::move(directory).value(), "", true};
    const int code = directory.error().code;
    std::string name = last_name(path);
    if ((code != ENOENT && code != ENOTDIR) || name.empty()) return std::move(directory).error();
    return Place{TRY(open_parent(parent_of(path), O_PATH | O_DIRECTORY)), std::move(name), path.ends_with('/')};
}

Result<CopySummary> receive_tree(const Place& place, const std::string& source_name, const CopyLimits& limits,
                                 const OwnFds& own, const Stream& from, CopySession* session) {
    CopyBudget budget(limits);
    TRY(Receiver(budget, own, from, session).receive(place, source_name));
    return budget.used();
}

Result<void> receive_one_of(const Place& place, CopyBudget& budget, const OwnFds& own, const Stream& from,
                            CopySession& session) {
    return Receiver(budget, own, from, &session).receive_one_of(place);
}

Result<CopySummary> receive_file(const TakePiece& take, const CopyLimits& limits, const Stream& from) {
    CopyBudget budget(limits);
    TRY(budget.add_file(0));
    if (TRY(from.receive()).word != Word::file) return disagreement();
    for (;;) {
        const Item item = TRY(from.receive());
        if (item.word == Word::up) return budget.used();
        if (item.word != Word::bytes) return disagreement();
        TRY(budget.add_bytes(item.text.size()));
        TRY(take(item.text));
    }
}

}  // namespace pinfold
