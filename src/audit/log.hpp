// The audit log: what was done with containers, by whom, one JSON object per line, each with the hash of the one
// before.
#pragma once

#include <signal.h>

#include <functional>
#include <string>
#include <vector>

#include "audit/line.hpp"
#include "pinfold/result.hpp"
#include "policy/policy.hpp"

namespace pinfold {

// While the log is locked: whoever types Ctrl-Z would stop all others with us, who wait for it.
class StopsHeldBack {
public:
    StopsHeldBack();
    ~StopsHeldBack();
    StopsHeldBack(const StopsHeldBack&) = delete;
    StopsHeldBack& operator=(const StopsHeldBack&) = delete;

private:
    sigset_t before_{};
};

class AuditLog {
public:
    // Refused: a file that cannot be written, or that others could write to. It is made if it is not there. All events
    // are those of who calls us now.
    static Result<AuditLog> open(const std::string& path);

    // Whole, or with an error; whatever dies meanwhile, the next one goes on behind it. Several processes may append at
    // once.
    Result<void> append(const AuditEvent& event) const;

private:
    AuditLog(std::string path, std::string caller) : path_(std::move(path)), caller_(std::move(caller)) {}

    // No descriptor: nothing is kept open while a container runs, and a log that was moved away is begun anew.
    std::string path_;
    std::string caller_;
};

// A text with the names that the caller has used, in the place of those of the files that we have opened for them.
using Rewording = std::function<std::string(std::string)>;

// The logs that an event goes to, often none.
class AuditTrail {
public:
    static Result<AuditTrail> open(const std::vector<std::string>& files, Rewording words = {});

    bool is_on() const { return !logs_.empty(); }
    Result<void> append(const AuditEvent& event) const;

private:
    std::vector<AuditLog> logs_;
    Rewording words_;
};

// For what has happened already and cannot be refused any more: a failure is only warned about.
void append_or_warn(const AuditTrail& trail, const AuditEvent& event);

// A failure is one more event, of the same name, with the member "error".
void append_failure(const AuditTrail& trail, const AuditEvent& event, const Error& error);

// The logs that the policies and `added`, if it is not empty, ask for.
Result<AuditTrail> open_trail(const Policies& policies, const std::string& added, Rewording words = {});

// What a policy refuses is an event, in the same logs; any other error is none. Whoever hands the last such error on to
// the caller calls this: main and the doors of the library.
void log_refusal(const Error& error, const std::string& id, const Policies& policies, const std::string& added,
                 Rewording words = {});

}  // namespace pinfold
