// Files for a job, and files from it.
#include "sandbox/transfer.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "files/matches.hpp"
#include "files/receive_tree.hpp"
#include "policy/host_path.hpp"

namespace pinfold {

namespace {

// Without dots that mean the directory itself, which may have to be made.
std::string from_cwd(const std::string& path, const InsideOf& sandbox) {
    const std::string whole = path.starts_with('/') ? path : concat(sandbox.cwd, '/', path);
    std::string plain;
    for (const std::string_view part : split(whole, '/')) {
        if (!part.empty() && part != ".") plain += concat('/', part);
    }
    return plain.empty() || path.ends_with('/') ? plain + '/' : plain;
}

// "." and the like mean a directory that things go into, also where it is still to be made, and never a new name.
bool names_directory_itself(std::string_view path) { return path == "." || path.ends_with("/."); }

CopyFailure failure_of(const FileCopy& asked, const std::string& label, const Error& error) {
    return {asked.source, asked.destination, concat(label, ": ", error.message), error.hint};
}

const char* remedy_for(int code) {
    switch (code) {
        case EFBIG:
        case EMFILE: return "--ro-bind shows it without a copy";
        case ENOSPC: return "--disk gives the sandbox more room, and --ro-bind shows it without a copy";
        case EROFS:
            return "the sandbox can write to /workspace and /tmp; with --writable-root to more, but not to this "
                   "machine's "
                   "/usr";
        default: return nullptr;
    }
}

Result<UniqueFd> make_directory(int parent, const std::string& name) {
    if (::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST)
        return errno_error(concat("make directory ", quoted(name)));
    return open_at(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
}

constexpr const char* kSecrets = "/run/secrets";
constexpr uint64_t kLargestSecret = 1 << 20;

std::string option_of(const Secret& secret) { return concat("--secret ", quoted(secret.name)); }

// The name of a file, and of nothing else.
bool is_plain_name(std::string_view name) {
    constexpr std::string_view kAllowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
    return !name.empty() && name.size() <= NAME_MAX && name.find_first_not_of(kAllowed) == name.npos && name[0] != '.';
}

bool is_directory(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Result<Transfers> Transfers::open(const SandboxJob& job, const Policies& policies) {
    Transfers transfers;
    for (const FileCopy& copy : job.copy_in) {
        const std::string label = concat("--copy-in ", quoted(copy.source));
        UniqueFd source = TRY_IN(label, open_allowed(policies, copy.source, Access::read));
        transfers.in_.push_back({std::move(source), last_name(copy.source), copy.destination, label, copy});
    }
    for (const FileCopy& copy : job.copy_out) {
        const std::string label = concat("--copy-out ", quoted(copy.destination));
        if (copy.destination == "-")
            return plain_error(concat(label, ": standard output is the program's"))
                .with_hint("name a file; one of that name is ./-");
        const bool into = is_directory(copy.destination);
        std::string target = copy.destination;  // with a slash behind it if it is to be a directory
        while (!into && target.size() > 1 && target.ends_with('/')) target.pop_back();
        UniqueFd directory = TRY_IN(label, into ? open_allowed(policies, target, Access::write)
                                                : open_parent_allowed(policies, target, Access::write));
        const std::string name = last_name(into ? copy.source : copy.destination);  // none: of DIR/. what it holds
        transfers.out_.push_back({std::move(directory), name, copy.source, label, copy, !into});
    }
    // As much as the sandbox's own file systems can hold; of a directory that is bound, as much as by cp at least.
    constexpr uint64_t kMegabyte = 1 << 20, kBlock = 4096, kMore = 4096;
    const uint64_t disk = job.limits.disk_mb * kMegabyte;
    transfers.limits_.outward_links = job.outward_links;
    transfers.limits_.bytes = std::max(transfers.limits_.bytes, disk);
    transfers.limits_.files = std::max(transfers.limits_.files, disk / kBlock + kMore);
    TRY(transfers.open_secrets(job, policies));
    return transfers;
}

Result<void> Transfers::open_secrets(const SandboxJob& job, const Policies& policies) {
    for (const Secret& secret : job.secrets) {
        const std::string label = option_of(secret);
        if (!is_plain_name(secret.name))
            return plain_error(
                concat(label, ": a name has letters, digits, _, - and dots, and does not begin with one"));
        const auto same = [&](const SecretFile& other) { return other.asked.name == secret.name; };
        if (std::ranges::any_of(secrets_, same)) return plain_error(concat(label, " is given twice"));
        UniqueFd file = TRY_IN(label, open_allowed(policies, secret.file, Access::read));
        struct stat info {};
        if (::fstat(file.get(), &info) != 0) return errno_error(concat(label, ": stat"));
        if (!S_ISREG(info.st_mode)) return plain_error(concat(label, ": ", quoted(secret.file), " is no regular file"));
        if (uint64_t(info.st_size) > kLargestSecret)
            return plain_error(concat(label, ": ", info.st_size, " bytes, allowed: at most ", kLargestSecret));
        secrets_.push_back({std::move(file), secret, uint64_t(info.st_size)});
    }
    // They would be hidden, or hide; and a secret written to a directory of the host's would be none.
    for (const HostBind& bind : job.binds) {
        if (secrets_.empty() || !is_within(plain_path(bind.destination), kSecrets)) continue;
        return plain_error(concat("--secret: ", quoted(bind.destination), " is where a directory is bound"))
            .with_hint(concat("bind it elsewhere than at ", kSecrets));
    }
    return {};
}

std::optional<Mount> Transfers::secrets_mount(const User& user) const {
    if (secrets_.empty()) return std::nullopt;
    constexpr uint64_t kPage = 4096, kTemporary = 1;
    uint64_t pages = 0;
    for (const SecretFile& one : secrets_) pages += (one.size + kPage - 1) / kPage;
    return Mount{
        kSecrets,
        "tmpfs",
        "tmpfs",
        {"nosuid", "noexec", "nodev", "mode=0700", concat("uid=", user.uid), concat("gid=", user.gid),
         concat("size=", std::max<uint64_t>(pages, 1) * kPage), concat("nr_inodes=", secrets_.size() + kTemporary + 1)},
        {},
        {}};
}

Result<void> Transfers::copy_in(const InsideOf& sandbox, const CopySession& session) const {
    for (const Transfer& one : in_) {
        const std::string target = from_cwd(one.inside, sandbox);
        if (names_directory_itself(one.inside)) TRY_IN(one.label, find_directory(sandbox, target, true));
        Result<CopySummary> copied =
            pinfold::copy_in(sandbox, {one.host.get(), one.asked.source, one.name}, target, {}, session);
        if (copied) continue;
        Error error = std::move(copied).error().within(one.label);
        if (const char* remedy = remedy_for(error.code)) error.hint = remedy;
        return error;
    }
    return write_secrets(sandbox);
}

Result<void> Transfers::write_secrets(const InsideOf& sandbox) const {
    for (const SecretFile& one : secrets_) {
        const std::string label = option_of(one.asked);
        const std::string text = TRY_IN(label, read_regular(concat("/proc/self/fd/", one.host.get()), kLargestSecret));
        TRY_IN(label, write_inside(sandbox, concat(kSecrets, '/', one.asked.name), text, 0400));
    }
    return {};
}

std::vector<CopyFailure> Transfers::copy_out(const InsideOf& sandbox, CopySession session) const {
    std::vector<CopyFailure> failures;
    std::optional<Error> ended;
    for (const Transfer& one : out_) {
        const Result<void> copied = ended ? *ended : copy_one_out(sandbox, one, session, failures);
        if (copied) continue;
        failures.push_back(failure_of(one.asked, one.label, copied.error()));
        if (copied.error().code == ETIME || copied.error().code == EINTR) ended = copied.error();
    }
    return failures;
}

// A pattern that stands for nothing may be a name that looks like one.
Result<void> Transfers::copy_one_out(const InsideOf& sandbox, const Transfer& one, CopySession& session,
                                     std::vector<CopyFailure>& failures) const {
    const std::string inside = from_cwd(one.inside, sandbox);
    const MatchTarget target = {.open = [&]() -> Result<UniqueFd> {
                                    if (one.is_new) return make_directory(one.host.get(), one.name);
                                    return open_at(one.host.get(), ".", O_PATH | O_DIRECTORY);
                                },
                                .failed =
                                    [&](const std::string& path, const Error& error) {
                                        failures.push_back(failure_of({path, one.asked.destination}, one.label, error));
                                    }};
    if (is_pattern(inside) && TRY(copy_matches_out(sandbox, inside, target, limits_, session)) > 0) return {};
    // Another copy may have made a directory of the name, which this one goes into, then.
    const std::string own_name = last_name(one.asked.source);
    UniqueFd made;
    if (one.is_new && !own_name.empty())
        made = UniqueFd(::openat(one.host.get(), one.name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const char* slash = one.is_new && one.asked.destination.ends_with('/') ? "/" : "";
    const Result<CopySummary> copied = pinfold::copy_out(sandbox, inside, made ? made.get() : one.host.get(),
                                                         made ? own_name : concat(one.name, slash), limits_, &session);
    if (!copied && copied.error().code == ENOENT && is_pattern(inside))
        return plain_error(concat("nothing matches ", quoted(inside), " in the sandbox"));
    if (!copied) return copied.error();
    return {};
}

}  // namespace pinfold
