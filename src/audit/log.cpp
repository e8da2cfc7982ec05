// The audit log: appending to it.
#include "audit/log.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "audit/head.hpp"
#include "audit/tail.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

namespace {

// Members that hold a name, or a sentence with one. What else there is are the caller's own words already.
constexpr auto kWithNames =
    std::to_array<std::string_view>({"bundle", "error", "refused", "seccomp", "source", "target"});

AuditEvent reworded(AuditEvent event, const Rewording& words) {
    for (auto& [name, text] : event.members) {
        if (std::ranges::find(kWithNames, name) == kWithNames.end()) continue;
        const Result<Json> value = parse_json(text, name, kOwnJson);
        if (value && value->string() != nullptr) text = json_quoted(words(*value->string()));
    }
    return event;
}

Result<void> require_own(int fd, const std::string& path) {
    struct stat info {};
    if (::fstat(fd, &info) != 0) return errno_error(concat("stat ", path));
    if (!S_ISREG(info.st_mode)) return plain_error(concat(path, " is not a file"));
    if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
        return plain_error(concat(path, " belongs to user ", info.st_uid, ", who could change it"))
            .with_hint(concat("chown root:root ", path));
    }
    if ((info.st_mode & 022) == 0) return {};
    return plain_error(concat(path, " can be changed by others than its owner")).with_hint(concat("chmod go-w ", path));
}

Result<UniqueFd> open_log_file(const std::string& path) {
    Result<UniqueFd> file = open_at(AT_FDCWD, path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (!file && file.error().code == ENOENT)
        return std::move(file).error().with_hint("make its directory first, with mode 0700");
    if (!file && file.error().code == ELOOP)
        return std::move(file).error().with_hint("a log must not be a symbolic link: name the file itself");
    if (file) TRY(require_own(file->get(), path));
    return file;
}

bool is_at(int fd, const std::string& path) {
    struct stat own {};
    struct stat there {};
    return ::fstat(fd, &own) == 0 && ::stat(path.c_str(), &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
}

// Alone with the file, and with the one that has this name: it may be moved away while we wait.
Result<UniqueFd> open_locked(const std::string& path) {
    for (;;) {
        UniqueFd file = TRY(open_log_file(path));
        if (Result<void> locked = lock_file(file.get(), LOCK_EX, path); !locked)
            return std::move(locked).error().with_hint(
                "if that process is stopped or frozen, let it go on, or end it by SIGKILL: the log tells what it left");
        if (is_at(file.get(), path)) return file;
    }
}

struct Chain {
    int fd;
    const std::string& path;
    const std::string& caller;
    ChainEnd end;
    bool open_line;  // whether the file ends inside of a line

    // The head announces the line, so that one which is cut short, or which the head does not know yet, is told from
    // one that somebody else has removed or added.
    Result<void> add(const AuditEvent& event) {
        const ChainedLine line = compose_line(event, caller, end);
        TRY(write_head(path, {end, line.end.hash}));
        TRY(write_all(fd, concat(open_line ? "\n" : "", line.text, '\n'), path));
        end = line.end;
        open_line = false;
        return write_head(path, {end, ""});
    }
};

// What was found is noted, and stays: the chain goes on from the last line that is in order.
Result<void> note_faults(Chain& chain, std::string_view rest, const Head& head) {
    if (rest.empty() && head.is_at(chain.end)) return {};
    const bool torn = !head.next.empty() && head.end == chain.end;
    if (rest.ends_with('\n')) rest.remove_suffix(1);
    return chain.add(note_of(torn ? kTornEvent : kGapEvent, rest, head.end));
}

}  // namespace

StopsHeldBack::StopsHeldBack() {
    sigset_t stops;
    ::sigemptyset(&stops);
    for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) ::sigaddset(&stops, number);
    ::pthread_sigmask(SIG_BLOCK, &stops, &before_);  // cannot fail
}

StopsHeldBack::~StopsHeldBack() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Result<AuditLog> AuditLog::open(const std::string& path) {
    TRY(open_log_file(path));
    return AuditLog(path, caller_text());
}

Result<void> AuditLog::append(const AuditEvent& event) const {
    const StopsHeldBack held_back;
    const UniqueFd file = TRY(open_locked(path_));
    const Tail tail = TRY(read_tail(file.get(), path_));
    Chain chain{file.get(), path_, caller_, tail.end, tail.open};
    const Head head = TRY(read_head(path_));
    TRY(note_faults(chain, tail.rest, head));
    return chain.add(event);
}

Result<AuditTrail> AuditTrail::open(const std::vector<std::string>& files, Rewording words) {
    AuditTrail trail;
    trail.words_ = std::move(words);
    for (const std::string& file : files) trail.logs_.push_back(TRY_IN("audit", AuditLog::open(file)));
    return trail;
}

Result<void> AuditTrail::append(const AuditEvent& event) const {
    if (!is_on()) return {};
    const AuditEvent told = bounded(words_ ? reworded(event, words_) : event);
    for (const AuditLog& log : logs_) TRY_IN("audit", log.append(told));
    return {};
}

void append_or_warn(const AuditTrail& trail, const AuditEvent& event) {
    const Result<void> appended = trail.append(event);
    if (!appended) log_warning(appended.error().message);
}

void append_failure(const AuditTrail& trail, const AuditEvent& event, const Error& error) {
    if (trail.is_on()) append_or_warn(trail, {event.event, event.id, "", {{"error", json_quoted(error.message)}}});
}

Result<AuditTrail> open_trail(const Policies& policies, const std::string& added, Rewording words) {
    std::vector<std::string> files = audit_files(policies);
    if (!added.empty() && std::ranges::find(files, added) == files.end()) files.push_back(added);
    Result<AuditTrail> trail = AuditTrail::open(files, std::move(words));
    const bool is_policys = !trail && trail.error().code == EACCES && !audit_files(policies).empty();
    if (!is_policys || ::geteuid() == 0) return trail;
    return std::move(trail).error().with_hint(
        "the policy has this logged, and only its owner may write there: call pinfold by sudo, see pinfold-policy(5)");
}

void log_refusal(const Error& error, const std::string& id, const Policies& policies, const std::string& added,
                 Rewording words) {
    if (error.code != kPolicyRefusal) return;
    const Result<AuditTrail> trail = open_trail(policies, added, std::move(words));
    if (!trail) return log_warning(trail.error().message);
    append_or_warn(*trail, {"policy", id, "", {{"refused", json_quoted(error.message)}}});
}

}  // namespace pinfold
