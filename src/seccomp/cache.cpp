// One file per program, named after its key. What a file says becomes a security boundary, so nothing is read that
// somebody else could have written: no symbolic links, no other owner, no group or world write permission.
#include "seccomp/cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"
#include "seccomp/cache_key.hpp"
#include "seccomp/reporting.hpp"
#include "seccomp/shipped.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxEntries = 64;
constexpr std::array<char, 8> kMagic = {'p', 'f', 's', 'e', 'c', 'c', 'm', 'p'};

// A file is this and then the instructions. The digest is over all that follows it, the key included, so that a file
// under another program's name is found out as well.
struct Header {
    std::array<char, 8> magic = kMagic;
    Sha256Digest digest{};
    Sha256Digest key{};
    uint32_t flags = 0;
    uint32_t instructions = 0;
};
static_assert(sizeof(Header) == 80, "no padding: the header is hashed and written as it lies in memory");

constexpr size_t kHashedFrom = offsetof(Header, key);
constexpr size_t kMaxFileSize = sizeof(Header) + BPF_MAXINSNS * sizeof(sock_filter);

struct Entry {
    Sha256Digest key;
    std::string name;  // of the file, in the cache directory
};

Result<struct stat> stat_if_ours(int fd, mode_t type, std::string_view name) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error(concat("stat ", name));
    if ((info.st_mode & S_IFMT) != type) return plain_error(concat(name, " is of the wrong type"));
    if (info.st_uid != ::geteuid()) return plain_error(concat(name, " belongs to user ", info.st_uid));
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return plain_error(concat(name, " is writable by others"));
    return info;
}

Result<UniqueFd> open_cache_dir(const std::string& path) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    Result<UniqueFd> dir = open_at(AT_FDCWD, path, kFlags);
    if (!dir && dir.error().code == ENOENT) {
        if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(concat("make directory ", path));
        dir = open_at(AT_FDCWD, path, kFlags);
    }
    if (dir) TRY(stat_if_ours(dir->get(), S_IFDIR, path));
    return dir;
}

Result<SeccompFilter> decode(std::string_view content, const Sha256Digest& key) {
    Header header;
    if (content.size() < sizeof header) return plain_error("too short");
    std::memcpy(&header, content.data(), sizeof header);
    const size_t program_size = content.size() - sizeof header;
    if (header.magic != kMagic || header.key != key) return plain_error("not the program that its name says");
    if (program_size != header.instructions * sizeof(sock_filter)) return plain_error("wrong length");
    if (sha256(content.substr(kHashedFrom)) != header.digest) return plain_error("wrong checksum");
    SeccompFilter filter{std::vector<sock_filter>(header.instructions), header.flags};
    std::memcpy(filter.program.data(), content.data() + sizeof header, program_size);
    return filter;
}

std::string encode(const SeccompFilter& filter, const Sha256Digest& key) {
    Header header{.key = key, .flags = filter.flags, .instructions = uint32_t(filter.program.size())};
    std::string content(sizeof header + filter.program.size() * sizeof(sock_filter), '\0');
    std::memcpy(content.data(), &header, sizeof header);
    std::memcpy(content.data() + sizeof header, filter.program.data(), content.size() - sizeof header);
    header.digest = sha256(std::string_view(content).substr(kHashedFrom));
    std::memcpy(content.data(), &header, sizeof header);
    return content;
}

Result<SeccompFilter> read_entry(int dir, const Entry& entry) {
    // O_NONBLOCK: opening a fifo must not wait for a writer.
    const UniqueFd file = TRY(open_at(dir, entry.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    const struct stat info = TRY(stat_if_ours(file.get(), S_IFREG, entry.name));
    if (size_t(info.st_size) > kMaxFileSize) return plain_error(concat(entry.name, ": too long"));
    std::string content(size_t(info.st_size), '\0');
    const ssize_t got = ::read(file.get(), content.data(), content.size());
    if (got < 0) return errno_error(concat("read ", entry.name));
    return TRY_IN(entry.name, decode(std::string_view(content).substr(0, size_t(got)), entry.key));
}

// Entries and left-over temporary files; other files in the directory are none of our business.
bool is_cache_file(std::string_view name) {
    constexpr size_t kKeyDigits = 2 * sizeof(Sha256Digest);
    return name.find_first_not_of("0123456789abcdef") == kKeyDigits && name[kKeyDigits] == '.';
}

struct DatedName {
    timespec written;
    std::string name;

    bool operator<(const DatedName& other) const {
        if (written.tv_sec != other.written.tv_sec) return written.tv_sec < other.written.tv_sec;
        return written.tv_nsec < other.written.tv_nsec;
    }
};

struct CloseDirectory {
    void operator()(DIR* stream) const { ::closedir(stream); }
};

Result<std::vector<DatedName>> list_cache_files(int dir) {
    // Opened anew: a directory stream takes its descriptor over, and moves the offset of a duplicate.
    UniqueFd fd = TRY(open_at(dir, ".", O_RDONLY | O_DIRECTORY));
    const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(fd.get()));
    if (!stream) return errno_error("list the cache directory");
    fd.release();
    std::vector<DatedName> files;
    while (const dirent* item = ::readdir(stream.get())) {
        if (!is_cache_file(item->d_name)) continue;
        struct stat info {};
        if (::fstatat(dir, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
        files.push_back({info.st_mtim, item->d_name});
    }
    return files;
}

// Removes the oldest files until one more fits.
Result<void> make_room(int dir) {
    std::vector<DatedName> files = TRY(list_cache_files(dir));
    if (files.size() < kMaxEntries) return {};
    std::ranges::sort(files, std::less<>());
    files.resize(files.size() - (kMaxEntries - 1));
    for (const DatedName& file : files) {
        if (::unlinkat(dir, file.name.c_str(), 0) == 0) continue;
        if (errno != ENOENT) return errno_error(concat("remove ", file.name));  // ENOENT: another process was faster
    }
    return {};
}

// Without its name until it is whole: whoever reads sees a whole file or none. A file that was refused (a symbolic
// link, say) is replaced, not followed.
Result<void> write_entry(int dir, const Entry& entry, const std::string& content) {
    ::unlinkat(dir, entry.name.c_str(), 0);
    Result<void> made = make_file(dir, entry.name, content, 0600);
    if (!made && made.error().code == EEXIST) return {};  // another process has just stored the same
    return made;
}

Result<void> store_entry(int dir, const Entry& entry, const SeccompFilter& filter) {
    TRY(make_room(dir));
    return write_entry(dir, entry, encode(filter, entry.key));
}

// What came with pinfold was compiled when pinfold was.
std::optional<SeccompFilter> find_shipped(const Sha256Digest& key) {
    for (const ShippedProfile& profile : shipped_table()) {
        if (profile.key != key) continue;
        return SeccompFilter{{profile.program.begin(), profile.program.end()}, 0};
    }
    return std::nullopt;
}

}  // namespace

Result<SeccompFilter> compile_seccomp_cached(const Seccomp& profile, const std::string& cache_dir) {
    // One program serves both ways.
    if (is_reporting(profile)) {
        return with_reporting(TRY(compile_seccomp_cached(without_reporting(profile), cache_dir)));
    }
    const Sha256Digest key = seccomp_cache_key(profile);
    if (std::optional<SeccompFilter> shipped = find_shipped(key)) return std::move(*shipped);
    const Result<UniqueFd> dir = open_cache_dir(cache_dir);
    if (!dir) {
        log_debug(concat("seccomp cache not used: ", dir.error().message));
        return compile_seccomp(profile);
    }
    const Entry entry{key, to_hex(key) + ".bpf"};
    Result<SeccompFilter> cached = read_entry(dir->get(), entry);
    if (cached) return cached;
    log_debug(concat("seccomp cache: ", cached.error().message, "; compiling"));

    Result<SeccompFilter> compiled = compile_seccomp(profile);
    if (!compiled) return compiled;
    if (const Result<void> stored = store_entry(dir->get(), entry, *compiled); !stored) {
        log_debug(concat("seccomp cache: not stored: ", stored.error().message));
    }
    return compiled;
}

}  // namespace pinfold
