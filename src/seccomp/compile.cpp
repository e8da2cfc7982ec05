// A profile to BPF by way of libseccomp, which knows every architecture's system calls. It is told of calls, not of
// their arguments: where those count, it answers with a number that stands for the call, and argument_checks has the
// rest.
#include "seccomp/compile.hpp"

#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "pinfold/unique_fd.hpp"
#include "seccomp/argument_checks.hpp"
#include "seccomp/as_written.hpp"
#include "seccomp/load.hpp"
#include "seccomp/newer_syscalls.hpp"
#include "seccomp/ranges.hpp"
#include "seccomp/reporting.hpp"

namespace pinfold {

namespace {

struct ReleaseContext {
    void operator()(void* context) const { seccomp_release(context); }
};
using Context = std::unique_ptr<void, ReleaseContext>;

template <class Value>
struct Named {
    std::string_view name;
    Value value;
};

constexpr std::array<Named<uint32_t>, 9> kActions = {{
    {"SCMP_ACT_KILL", SCMP_ACT_KILL},
    {"SCMP_ACT_KILL_PROCESS", SCMP_ACT_KILL_PROCESS},
    {"SCMP_ACT_KILL_THREAD", SCMP_ACT_KILL_THREAD},
    {"SCMP_ACT_TRAP", SCMP_ACT_TRAP},
    {"SCMP_ACT_ERRNO", SCMP_ACT_ERRNO(0)},
    {"SCMP_ACT_TRACE", SCMP_ACT_TRACE(0)},
    {"SCMP_ACT_ALLOW", SCMP_ACT_ALLOW},
    {"SCMP_ACT_LOG", SCMP_ACT_LOG},
    {"SCMP_ACT_NOTIFY", SCMP_ACT_NOTIFY},
}};

constexpr std::array<std::string_view, 7> kOperators = {
    "SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", "SCMP_CMP_EQ", "SCMP_CMP_GE", "SCMP_CMP_GT", "SCMP_CMP_MASKED_EQ"};

constexpr std::array<Named<unsigned>, 4> kFlags = {{
    {"SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC},
    {"SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG},
    {"SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW},
    {"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV},
}};

constexpr uint32_t kMaxErrno = 4094;  // as libseccomp has it
constexpr uint32_t kMaxTraceMessage = 0xffff;
constexpr uint32_t kLastArgument = 5;

template <class Table>
Result<decltype(Table::value_type::value)> look_up(const Table& table, std::string_view what, std::string_view name) {
    const auto found = std::ranges::find(table, name, &Table::value_type::name);
    if (found == table.end()) return plain_error(concat("unknown seccomp ", what, " ", quoted(name)));
    return found->value;
}

// The action with its errno or message, which only two actions carry; EPERM is the specification's default for both.
Result<uint32_t> action_value(const std::string& name, std::optional<uint32_t> errno_ret) {
    const uint32_t action = TRY(look_up(kActions, "action", name));
    const uint32_t limit = action == SCMP_ACT_ERRNO(0) ? kMaxErrno : action == SCMP_ACT_TRACE(0) ? kMaxTraceMessage : 0;
    if (limit == 0 && errno_ret) return plain_error(concat("seccomp action ", name, " takes no errno"));
    if (limit == 0) return action;
    const uint32_t data = errno_ret.value_or(EPERM);
    if (data > limit) return plain_error(concat("seccomp action ", name, ": errno ", data, " is above ", limit));
    return action | data;
}

Result<uint32_t> default_action_value(const Seccomp& profile) {
    const uint32_t action = TRY(action_value(profile.default_action, profile.default_errno_ret));
    // The exec that starts the container would wait for an agent that has not got the listener yet.
    if (action == SCMP_ACT_NOTIFY) return plain_error("SCMP_ACT_NOTIFY cannot be the default seccomp action");
    return action;
}

template <class Table>
std::vector<std::string_view> names_of(const Table& table) {
    std::vector<std::string_view> names;
    for (const auto& entry : table) names.push_back(entry.name);
    return names;
}

bool notifies(const Seccomp& profile) {
    return std::ranges::find(profile.syscalls, "SCMP_ACT_NOTIFY", &SyscallRule::action) != profile.syscalls.end();
}

// No flags stay no flags: what is not asked for, such as giving up the speculation mitigation, is not done.
Result<unsigned> filter_flags(const Seccomp& profile) {
    unsigned flags = 0;
    for (const std::string& name : profile.flags) flags |= TRY(look_up(kFlags, "flag", name));
    if (notifies(profile)) return with_listener(flags);
    // The kernel refuses this one without a listener; without notifications it has no meaning.
    return flags & ~unsigned{SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV};
}

// "SCMP_ARCH_X86_64" as libseccomp spells it: "x86_64".
uint32_t architecture_token(std::string_view name) {
    constexpr std::string_view kPrefix = "SCMP_ARCH_";
    if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
    std::string lower(name);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return seccomp_arch_resolve_name(lower.c_str());
}

// A new context has the native architecture already. One that is not added gets the action for a bad
// architecture, which kills; so it is safe to leave out what this library or this machine cannot have.
Result<void> add_architectures(const Context& context, const Seccomp& profile) {
    for (const std::string& name : profile.architectures) {
        const uint32_t token = architecture_token(name);
        const int status = token == 0 ? -EDOM : seccomp_arch_add(context.get(), token);
        if (status == 0 || status == -EEXIST) continue;
        if (status != -EDOM) return errno_error(-status, concat("add seccomp architecture ", quoted(name)));
        log_debug(concat("seccomp: architecture ", quoted(name), " left out: not known here"));
    }
    return {};
}

Result<void> check_conditions(const std::vector<SyscallArg>& args) {
    for (const SyscallArg& arg : args) {
        if (arg.index > kLastArgument) return plain_error(concat("seccomp argument index ", arg.index, " is above 5"));
        if (std::ranges::find(kOperators, arg.op) == kOperators.end())
            return plain_error(concat("unknown seccomp operator ", quoted(arg.op)));
    }
    return {};
}

// By any architecture.
bool is_known_call(const std::string& name) { return seccomp_syscall_resolve_name(name.c_str()) != __NR_SCMP_ERROR; }

bool permits(std::string_view action) { return action == "SCMP_ACT_ALLOW" || action == "SCMP_ACT_LOG"; }

// All that a profile says of one call.
struct CallWays {
    std::string name;
    std::vector<Way> ways;
    std::map<std::string, uint32_t> by_conditions{};
};

// By their numbers. Those of calls that only other architectures have are negative; libseccomp finds their place.
using Calls = std::map<int, CallWays>;

std::string conditions_text(std::vector<SyscallArg> args) {
    std::ranges::sort(args, {}, &SyscallArg::index);
    std::string text;
    for (const SyscallArg& arg : args) text += concat(arg.index, arg.op, arg.value, ',', arg.value_two, ';');
    return text;
}

// Where one is the default action the other is an exception from it, which is no contradiction.
Result<void> add_way(CallWays& call, Way way, uint32_t default_action) {
    if (way.args.empty() && way.answer == default_action) return {};  // says nothing new
    const auto is_free = [](const Way& one) { return one.args.empty(); };
    if (way.args.empty() && std::ranges::any_of(call.ways, is_free)) return {};  // the first counts
    if (!way.args.empty() && way.answer != default_action) {
        const auto [same, is_new] = call.by_conditions.emplace(conditions_text(way.args), way.answer);
        if (!is_new && same->second != way.answer)
            return plain_error(concat("seccomp rule for ", quoted(call.name), " contradicts an earlier one"));
    }
    call.ways.push_back(std::move(way));
    return {};
}

Result<Calls> calls_of(const Seccomp& profile, uint32_t default_action) {
    Calls calls;
    for (const SyscallRule& rule : profile.syscalls) {
        const uint32_t answer = TRY(action_value(rule.action, rule.errno_ret));
        TRY(check_conditions(rule.args));
        const std::vector<std::vector<SyscallArg>> ways = ways_to_fulfil(rule);
        for (const std::string& name : rule.names) {
            if (!is_known_call(name)) continue;  // tell_unknown_calls() tells of them
            CallWays& call =
                calls.try_emplace(seccomp_syscall_resolve_name(name.c_str()), CallWays{name, {}}).first->second;
            for (const std::vector<SyscallArg>& args : ways) TRY(add_way(call, {args, answer}, default_action));
        }
    }
    for (auto& [number, call] : calls) put_in_order(call.ways);
    return calls;
}

// Answers that stand for calls: messages to a tracer, of those that the profile itself does not send.
class StandIns {
public:
    StandIns(const Calls& calls, uint32_t default_action) : taken_{default_action} {
        for (const auto& [number, call] : calls) {
            for (const Way& way : call.ways) taken_.insert(way.answer);
        }
    }

    uint32_t next() {
        while (!taken_.insert(SCMP_ACT_TRACE(last_)).second) ++last_;
        return SCMP_ACT_TRACE(last_);
    }

private:
    std::set<uint32_t> taken_;
    uint32_t last_ = 0;  // there are a hundred times as many as calls
};

Result<void> add_rule(const Context& context, uint32_t action, int number, const std::string& name) {
    const int status = seccomp_rule_add_array(context.get(), action, number, 0, nullptr);
    if (status != 0) return errno_error(-status, concat("add seccomp rule for ", quoted(name)));
    return {};
}

// Returns the checks for calls whose arguments count, by what stands for them.
Result<std::map<uint32_t, Checks>> add_calls(const Context& context, const Calls& calls, uint32_t default_action) {
    StandIns stand_ins(calls, default_action);
    std::map<uint32_t, Checks> checks;
    for (const auto& [number, call] : calls) {
        const std::vector<Way>& ways = call.ways;
        const auto says_nothing_new = [&](const Way& way) { return way.answer == default_action; };
        if (std::ranges::all_of(ways, says_nothing_new)) continue;
        uint32_t answer = ways.front().answer;
        if (!ways.front().args.empty()) {
            answer = stand_ins.next();
            checks[answer] = {check_arguments(ways, default_action), answer_unseen(ways, default_action)};
        }
        // libseccomp refuses the default action.
        if (answer != default_action) TRY(add_rule(context, answer, number, call.name));
    }
    return checks;
}

// libseccomp writes a program to a descriptor only.
Result<std::vector<sock_filter>> export_program(const Context& context) {
    // A binary tree over the call numbers instead of a list: for a profile of 350 calls 17 instructions where the list
    // takes 200, and half the time to load, since the kernel tries every call number then. If refused, it is a list.
    seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    const UniqueFd file(::memfd_create("seccomp", MFD_CLOEXEC));
    if (!file) return errno_error("create a memory file for the seccomp program");
    const int status = seccomp_export_bpf(context.get(), file.get());
    if (status != 0) return errno_error(-status, "export the seccomp program");
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    if (size < 0) return errno_error("measure the seccomp program");
    std::vector<sock_filter> program(size_t(size) / sizeof(sock_filter));
    if (::pread(file.get(), program.data(), size_t(size), 0) != size) return errno_error("read the seccomp program");
    return program;
}

}  // namespace

bool has_listener(const Seccomp& profile) { return is_reporting(profile) || notifies(profile); }

unsigned with_listener(unsigned flags) {
    // With a listener to return, the kernel has no other way to name a thread that could not follow.
    if (flags & SECCOMP_FILTER_FLAG_TSYNC) flags |= SECCOMP_FILTER_FLAG_TSYNC_ESRCH;
    return flags | SECCOMP_FILTER_FLAG_NEW_LISTENER;
}

std::vector<std::string> unknown_calls(const Seccomp& profile, bool denied_only) {
    std::vector<std::string> names;
    for (const SyscallRule& rule : profile.syscalls) {
        if (denied_only && permits(rule.action)) continue;
        const bool by_number = denied_only && rule.action == "SCMP_ACT_ERRNO" && rule.args.empty();
        for (const std::string& name : rule.names) {
            if (by_number && is_denied_by_number(name)) continue;
            if (!is_known_call(name) && std::ranges::find(names, name) == names.end()) names.push_back(name);
        }
    }
    return names;
}

void tell_unknown_calls(const Seccomp& profile) {
    // Leaving a name out of an allow list denies more; leaving it out of a deny list denies less.
    const bool is_deny_list = permits(profile.default_action);
    if (!is_deny_list && !debug_enabled()) return;
    const std::string names = printable(join(unknown_calls(profile, is_deny_list), ", "));
    static std::string told;  // a sandbox's profile is compiled to be looked at, and to be loaded
    if (names.empty() || std::exchange(told, names) == names) return;
    if (is_deny_list) log_warning(concat("seccomp: not known to libseccomp, and so not denied: ", names));
    else log_debug(concat("seccomp: not known to libseccomp, and left out: ", names));
}

Result<SeccompFilter> compile_by_number(const Seccomp& profile) {
    const uint32_t default_action = TRY(default_action_value(profile));
    const unsigned flags = TRY(filter_flags(profile));
    const Context context(seccomp_init(default_action));
    if (!context) return plain_error(concat("seccomp action ", profile.default_action, " is not supported here"));
    TRY(add_architectures(context, profile));
    const Calls calls = TRY(calls_of(profile, default_action));
    const std::map<uint32_t, Checks> checks = TRY(add_calls(context, calls, default_action));

    SeccompFilter filter{newer_syscalls_prelude(profile), flags};
    const auto program = with_argument_checks(TRY(export_program(context)), checks);
    if (!program) return plain_error("the seccomp program that libseccomp wrote does not end");
    filter.program.insert(filter.program.end(), program->begin(), program->end());
    return filter;
}

Result<SeccompFilter> compile_seccomp(const Seccomp& profile) {
    if (is_reporting(profile)) return with_reporting(TRY(compile_seccomp(without_reporting(profile))));
    tell_unknown_calls(profile);
    SeccompFilter filter = TRY(compile_by_number(profile));
    if (auto merged = merge_ranges(filter.program)) filter.program = std::move(*merged);
    if (filter.program.size() > BPF_MAXINSNS) {
        return plain_error(concat("the seccomp program has ", filter.program.size(), " instructions, the kernel takes ",
                                  BPF_MAXINSNS));
    }
    return filter;
}

SeccompWords seccomp_words() {
    SeccompWords words{names_of(kActions), {kOperators.begin(), kOperators.end()}, names_of(kFlags), {}};
    for (const Named<unsigned>& flag : kFlags) {
        if (kernel_takes_seccomp_flag(flag.value)) words.kernel_flags.push_back(flag.name);
    }
    return words;
}

bool knows_seccomp_architecture(std::string_view name) { return architecture_token(name) != 0; }

bool is_native_architecture(std::string_view name) { return architecture_token(name) == seccomp_arch_native(); }

std::string libseccomp_version() {
    const scmp_version* version = seccomp_version();
    return concat(version->major, '.', version->minor, '.', version->micro);
}

}  // namespace pinfold
