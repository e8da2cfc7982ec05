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
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"
#include "seccomp/cache_key.hpp"
#include "seccomp/reporting.hpp"
#include "seccomp/shipped.hpp"

namespace pinfold {

namespace {

constexpr size_t kMaxEntries = 64;
constexpr size_t kMaxKey = 1 << 20;  // no real profile comes near it
constexpr std::array<char, 8> kMagic = {'p', 'f', 's', 'e', 'c', 'c', 'm', '2'};

// A file is this, then the instructions, then the key: whatever its name is, a program is that of its key alone. The
// checksum is over all that follows it.
struct Header {
    std::array<char, 8> magic = kMagic;
    uint64_t checksum = 0;
    uint32_t flags = 0;
    uint32_t instructions = 0;
};
static_assert(sizeof(Header) == 24, "no padding: the header is written as it lies in memory");

constexpr size_t kCheckedFrom = offsetof(Header, flags);
constexpr size_t kMaxFileSize = sizeof(Header) + BPF_MAXINSNS * sizeof(sock_filter) + kMaxKey;

struct Entry {
    std::string key;
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

Result<SeccompFilter> decode(std::string_view content, std::string_view key) {
    Header header;
    if (content.size() < sizeof header) return plain_error("too short");
    std::memcpy(&header, content.data(), sizeof header);
    const size_t program_size = size_t{header.instructions} * sizeof(sock_filter);
    if (header.magic != kMagic) return plain_error("not a program of this version");
    if (content.size() != sizeof header + program_size + key.size()) return plain_error("wrong length");
    if (content.substr(sizeof header + program_size) != key) return plain_error("the program of another profile");
    if (quick_hash(content.substr(kCheckedFrom)) != header.checksum) return plain_error("wrong checksum");
    SeccompFilter filter{std::vector<sock_filter>(header.instructions), header.flags};
    std::memcpy(filter.program.data(), content.data() + sizeof header, program_size);
    return filter;
}

std::string encode(const SeccompFilter& filter, const std::string& key) {
    Header header{.flags = filter.flags, .instructions = uint32_t(filter.program.size())};
    const auto bytes = [](const void* data, size_t size) { return std::string(static_cast<const char*>(data), size); };
    const std::string program = bytes(filter.program.data(), filter.program.size() * sizeof(sock_filter));
    const std::string content = concat(bytes(&header, sizeof header), program, key);
    header.checksum = quick_hash(std::string_view(content).substr(kCheckedFrom));
    return concat(bytes(&header, sizeof header), program, key);
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

// Entries of this version and of earlier ones, and what a killed process has left; other files in the directory are
// none of our business.
bool is_cache_file(std::string_view name) {
    const size_t digits = name.find_first_not_of("0123456789abcdef");
    return (digits == 16 || digits == 64) && name[digits] == '.';
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

// With one blank between them. A name that is empty, or has a blank in it, is none of the table's.
bool is_list_of(std::string_view words, const std::vector<std::string>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].empty() || list[i].find(' ') != std::string::npos || !words.starts_with(list[i])) return false;
        words.remove_prefix(list[i].size());
        const bool is_last = i + 1 == list.size();
        if (words.empty() || is_last) return words.empty() && is_last;
        if (words[0] != ' ') return false;
        words.remove_prefix(1);
    }
    return words.empty();
}

bool is_rule(const ShippedRule& shipped, const SyscallRule& rule) {
    const auto is_arg = [](const ShippedArg& one, const SyscallArg& arg) {
        return one.index == arg.index && one.value == arg.value && one.value_two == arg.value_two && one.op == arg.op;
    };
    return shipped.action == rule.action && shipped.errno_ret == rule.errno_ret &&
           is_list_of(shipped.names, rule.names) && std::ranges::equal(shipped.args, rule.args, is_arg);
}

// In all that its key is made of.
bool is_profile(const ShippedProfile& shipped, const Seccomp& profile) {
    return profile.flags.empty() && shipped.default_action == profile.default_action &&
           shipped.default_errno_ret == profile.default_errno_ret &&
           is_list_of(shipped.architectures, profile.architectures) &&
           std::ranges::equal(shipped.rules, profile.syscalls, is_rule);
}

// What came with pinfold was compiled when pinfold was.
std::optional<SeccompFilter> find_shipped(const Seccomp& profile) {
    for (const ShippedProfile& shipped : shipped_table()) {
        if (!is_profile(shipped, profile)) continue;
        return SeccompFilter{{shipped.program.begin(), shipped.program.end()}, 0};
    }
    return std::nullopt;
}

}  // namespace

Result<SeccompFilter> compile_seccomp_cached(const Seccomp& profile, const std::string& cache_dir) {
    // One program serves both ways.
    if (is_reporting(profile)) {
        return with_reporting(TRY(compile_seccomp_cached(without_reporting(profile), cache_dir)));
    }
    if (std::optional<SeccompFilter> shipped = find_shipped(profile)) return std::move(*shipped);
    const std::string key = seccomp_cache_key(profile);
    if (key.size() > kMaxKey) return compile_seccomp(profile);
    const Result<UniqueFd> dir = open_cache_dir(cache_dir);
    if (!dir) {
        log_debug(concat("seccomp cache not used: ", dir.error().message));
        return compile_seccomp(profile);
    }
    const Entry entry{key, seccomp_cache_name(key)};
    Result<SeccompFilter> cached = read_entry(dir->get(), entry);
    if (cached) tell_unknown_calls(profile);
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
