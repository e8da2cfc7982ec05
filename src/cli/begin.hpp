// What verbs do before they begin: their event is in the log, or they do not begin; and the options of a process that
// they start are looked at.
#pragma once

#include <type_traits>

#include "audit/log.hpp"
#include "cli/verbs.hpp"
#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"
#include "process/supervise.hpp"
#include "verify/receipt.hpp"

namespace pinfold {

// For what is logged. Not to be used longer than the gate.
Rewording callers_words(const Gate& gate);

// The logs that --audit and the policies ask for.
Result<AuditTrail> open_audit(const CommandLine& line);

// With --strict: what does not hold ends the start.
ReceiptHandler require_and_log(const AuditTrail& trail, const std::string& id);

// Whether a signal may end us in the middle of what was logged: of a copy, and of the wait for what was asked to stop,
// which can take long and have no end to log.
enum class Signals : bool { held_back, left_alone };

// What is logged is done, or its failure is logged as well.
template <class Work>
Result<int> audited(const AuditTrail& trail, const AuditEvent& event, Work work, Signals signals = Signals::held_back) {
    if (trail.is_on() && signals == Signals::held_back) hold_signals_until_exit();
    TRY(trail.append(event));
    Result<int> done = work();
    if (!done) append_failure(trail, event, done.error());
    return done;
}

// The same for an event that is only made where there is a log: it may take the digest of a config.
template <class Work, class MakeEvent>
requires std::is_invocable_r_v<AuditEvent, MakeEvent> Result<int> audited(const AuditTrail& trail, MakeEvent make_event,
                                                                          Work work) {
    return trail.is_on() ? audited(trail, make_event(), work) : work();
}

template <class Work>
Result<int> audited(const CommandLine& line, const AuditEvent& event, Work work, Signals signals = Signals::held_back) {
    return audited(TRY(open_audit(line)), event, work, signals);
}

// Refused: a terminal that nobody would hold, a socket without a terminal, descriptors that the caller did not pass.
Result<void> check_child_options(const ChildOptions& options, const Process& process);

// Refused: a terminal, in the foreground, with a standard input that nothing ever comes from. The program would wait.
Result<void> check_input(const ChildOptions& options, const Process& process);

ChildOptions with_cache(ChildOptions options, const GlobalOptions& global);

}  // namespace pinfold
