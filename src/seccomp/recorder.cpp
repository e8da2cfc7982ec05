// Learns a profile from the calls that a program makes.
#include "seccomp/recorder.hpp"

#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "base/strings.hpp"
#include "seccomp/access.hpp"
#include "seccomp/as_written.hpp"
#include "seccomp/compile.hpp"
#include "seccomp/reporting.hpp"
#include "seccomp/shipped.hpp"

namespace pinfold {

namespace {

constexpr std::string_view kRecording = "learn";  // allows what passes unseen

const ShippedProfile& shipped(std::string_view name) {
    return *std::ranges::find(shipped_table(), name, &ShippedProfile::name);
}

// ENOSYS is no denial: it sends a C library to a call that can be judged.
bool sends_elsewhere(const SyscallRule& rule) { return rule.errno_ret == ENOSYS; }

std::string conditions_in_words(const SyscallRule& rule) { return join(conditions_of(rule), " or "); }

// The rules for ioctl tell what is not allowed, so that a single one of them allows half of all requests. What was
// asked for is told better by its number.
constexpr std::string_view kExact = "ioctl";
constexpr const char* kExactReason = "The program made this request.";

SyscallArg exact_request(const seccomp_data& call) {
    constexpr uint64_t kInt = 0xffffffff;
    return {1, kInt, call.args[1] & kInt, "SCMP_CMP_MASKED_EQ"};
}

// What a profile says of calls, in an order that depends on nothing but that.
class Rules {
public:
    explicit Rules(const std::optional<Profile>& profile) {
        for (size_t i = 0; profile && i < profile->seccomp.syscalls.size(); ++i) {
            const SyscallRule& rule = profile->seccomp.syscalls[i];
            for (const std::string& call : rule.names) add(call, rule, profile->notes[i]);
        }
    }

    // Unless the call is allowed anyway, or denied on purpose.
    void add_missing(const std::string& call, const SyscallRule& rule, const RuleNote& note) {
        if (denied_.contains(call) || conditions_[call].contains("")) return;
        if (!conditions_[call].contains(conditions_in_words(rule))) add(call, rule, note);
    }

    void move_to(Profile& profile) {
        profile.seccomp.syscalls.clear();
        profile.notes.clear();
        for (auto& [key, entry] : rules_) {
            entry.first.names.assign(names_[key].begin(), names_[key].end());
            profile.seccomp.syscalls.push_back(std::move(entry.first));
            profile.notes.push_back(std::move(entry.second));
        }
    }

private:
    using Key = std::tuple<std::string, std::string, std::string, std::optional<uint32_t>, std::string>;

    void add(const std::string& call, const SyscallRule& rule, const RuleNote& note) {
        const std::string conditions = conditions_in_words(rule);
        const Key key(note.group, note.reason, rule.action, rule.errno_ret, conditions);
        rules_.emplace(key, std::pair(rule, note));
        names_[key].insert(call);
        if (is_allowing(rule.action)) conditions_[call].insert(conditions);
        else denied_.insert(call);
    }

    std::map<Key, std::pair<SyscallRule, RuleNote>> rules_;
    std::map<Key, std::set<std::string>> names_;
    std::map<std::string, std::set<std::string>> conditions_;  // under which a call is allowed
    std::set<std::string> denied_;
};

Profile empty_profile(const std::string& description) {
    Profile profile{description, {}, {}};
    profile.seccomp.default_action = "SCMP_ACT_ERRNO";
    profile.seccomp.default_errno_ret = EPERM;
    return profile;
}

}  // namespace

Recorder::Recorder() {
    for (const ShippedProfile& source : shipped_table()) {
        if (source.name == kRecording) continue;
        const Profile profile = unpack(source);
        for (size_t i = 0; i < profile.notes.size(); ++i) {
            SyscallRule rule = profile.seccomp.syscalls[i];
            if (!is_allowing(rule.action) && !sends_elsewhere(rule)) continue;
            for (std::vector<SyscallArg>& way : ways_to_fulfil(rule)) {
                rule.args = std::move(way);
                for (const std::string& call : rule.names) known_[call].push_back({rule, profile.notes[i]});
            }
        }
    }
    // What passes unseen is needed by all, and what is sent elsewhere must be so by each profile.
    for (const ShippedRule& rule : shipped(kRecording).rules) {
        for (const std::string_view call : split(rule.names, ' '))
            remember(std::string(call), known_.find(call)->second.front());
    }
    for (const auto& [call, rules] : known_) {
        if (sends_elsewhere(rules.front().rule)) remember(call, rules.front());
    }
    watch();
}

// Nothing was recorded yet: what is needed now is what the tracer is not told of.
void Recorder::watch() {
    watched_ = empty_profile("").seccomp;
    watched_.architectures = unpack(shipped(kRecording)).seccomp.architectures;
    for (const auto& [call, rules] : known_) {
        for (const CallRule& known : rules) {
            SyscallRule rule = known.rule;
            rule.names = {call};
            if (!needed_.contains({call, ""})) rule.action = "SCMP_ACT_TRACE";
            watched_.syscalls.push_back(std::move(rule));
        }
    }
}

void Recorder::remember(const std::string& call, const CallRule& needed) {
    needed_.emplace(std::pair(call, conditions_in_words(needed.rule)), needed);
}

const Recorder::CallRule* Recorder::find_fitting(const std::string& name, const seccomp_data& call) const {
    const auto rules = known_.find(name);
    if (rules == known_.end()) return nullptr;
    for (const CallRule& known : rules->second) {
        if (holds(known.rule.args, call)) return &known;
    }
    return nullptr;
}

void Recorder::record(const seccomp_data& call) {
    constexpr size_t kMostRequests = 1000;
    const std::pair<uint32_t, int> number(call.arch, call.nr);
    if (free_.contains(number)) return;
    const std::string name = syscall_name(call.arch, call.nr);
    const CallRule* fitting = find_fitting(name, call);
    if (fitting == nullptr) return;
    foreign_ = foreign_ || call.arch != seccomp_arch_native();
    CallRule needed = *fitting;
    if (name == kExact && needed_.size() < kMostRequests) {
        needed.rule.args = {exact_request(call)};
        needed.note.reason = kExactReason;
    }
    if (needed.rule.args.empty()) free_.insert(number);
    remember(name, needed);
}

Profile Recorder::learned(const std::string& description, const std::optional<Profile>& earlier) const {
    Profile profile = earlier ? *earlier : empty_profile(description);
    Rules rules(earlier);
    for (const auto& [key, needed] : needed_) rules.add_missing(key.first, needed.rule, needed.note);
    rules.move_to(profile);
    // A filter for architectures that nothing was seen of only lets in programs that were not meant.
    std::vector<std::string>& architectures = profile.seccomp.architectures;
    for (const std::string_view name : split(shipped(kRecording).architectures, ' ')) {
        const bool is_wanted = foreign_ || is_native_architecture(name);
        if (is_wanted && std::ranges::find(architectures, name) == architectures.end())
            architectures.emplace_back(name);
    }
    return profile;
}

}  // namespace pinfold
