// pinfold seccomp: what profiles allow, and why.
#include <utility>

#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "seccomp/access.hpp"
#include "seccomp/profiles.hpp"
#include "spec/write_seccomp.hpp"

namespace pinfold {

namespace {

constexpr size_t kWidth = 100;
constexpr std::string_view kOr = ", or ";  // between conditions

// Words with blanks between them, in lines that begin with the indent.
std::string wrapped(const std::vector<std::string>& words, std::string_view indent) {
    std::string out;
    size_t column = kWidth;
    for (const std::string& word : words) {
        const bool fits = column + 1 + word.size() <= kWidth;
        out += fits ? concat(' ', word) : concat(out.empty() ? "" : "\n", indent, word);
        column = (fits ? column + 1 : indent.size()) + word.size();
    }
    return out + "\n";
}

std::string wrapped_text(std::string_view text, std::string_view indent) {
    const std::vector<std::string_view> words = split(text, ' ');
    return wrapped({words.begin(), words.end()}, indent);
}

// A call with conditions, none of which is torn apart.
std::string wrapped_conditions(std::string_view text, std::string_view indent) {
    std::vector<std::string> words;
    while (!text.empty()) {
        const size_t end = text.find(kOr);
        words.emplace_back(text.substr(0, end == text.npos ? end : end + kOr.size() - 1));
        text.remove_prefix(end == text.npos ? text.size() : end + kOr.size());
    }
    return wrapped(words, indent);
}

// In the order in which they come first.
struct Group {
    RuleNote note;
    std::vector<std::string> calls;        // whatever their arguments are
    std::vector<std::string> conditional;  // a line each
};
struct Answer {
    std::string words;
    std::vector<Group> groups;
};

template <class Item, class Matches>
Item& find_or_add(std::vector<Item>& items, Matches matches, Item added) {
    for (Item& item : items) {
        if (matches(item)) return item;
    }
    return items.emplace_back(std::move(added));
}

void add_call(Answer& answer, const std::string& call, const SyscallRule& rule, RuleNote note) {
    if (note.group.empty()) note.group = group_of_call(call);
    const auto is_same = [&](const Group& item) {
        return item.note.group == note.group && item.note.reason == note.reason;
    };
    Group& group = find_or_add(answer.groups, is_same, Group{note, {}, {}});
    const std::vector<std::string> conditions = conditions_of(rule);
    if (conditions.empty()) group.calls.push_back(call);
    else group.conditional.push_back(concat(call, " if ", join(conditions, kOr)));
}

std::vector<Answer> answers_of(const Profile& profile) {
    std::vector<Answer> answers = {{answer_in_words("SCMP_ACT_ALLOW", {}), {}}};
    for (size_t i = 0; i < profile.seccomp.syscalls.size(); ++i) {
        const SyscallRule& rule = profile.seccomp.syscalls[i];
        const std::string words = answer_in_words(rule.action, rule.errno_ret);
        const auto is_same = [&](const Answer& item) { return item.words == words; };
        Answer& answer = find_or_add(answers, is_same, Answer{words, {}});
        for (const std::string& call : rule.names) add_call(answer, call, rule, profile.notes[i]);
    }
    return answers;
}

std::string group_text(const Group& group) {
    const std::string& reason = group.note.reason;
    std::string out = wrapped_text(concat(group.note.group, reason.empty() ? "" : ": ", reason), "  ");
    if (!group.calls.empty()) out += wrapped(group.calls, "      ");
    for (const std::string& line : group.conditional) out += wrapped_conditions(line, "      ");
    return out;
}

std::string readable(const Profile& profile) {
    std::string out = profile.description.empty() ? "" : concat(profile.description, "\n\n");
    for (const Answer& answer : answers_of(profile)) {
        if (answer.groups.empty()) continue;
        out += concat(answer.words, ":\n");
        for (const Group& group : answer.groups) out += group_text(group);
        out += "\n";
    }
    const Seccomp& seccomp = profile.seccomp;
    return concat(out, "all else: ", answer_in_words(seccomp.default_action, seccomp.default_errno_ret), "\n");
}

std::string list_of_profiles() {
    std::string out;
    for (const ProfileInfo& info : shipped_profiles()) {
        out += concat(info.name, std::string(10 - info.name.size(), ' '), info.description, "\n");
    }
    return out;
}

std::string difference(const SeccompDiffOptions& names, const CallsByGroup& calls) {
    if (calls.empty()) return concat("nothing that ", names.to, " allows and ", names.from, " does not\n");
    std::string out = concat(names.to, " allows, ", names.from, " does not:\n");
    for (const auto& [group, lines] : calls) {
        Group printed{{group, ""}, {}, {}};
        for (const std::string& line : lines) {
            (line.find(' ') == std::string::npos ? printed.calls : printed.conditional).push_back(line);
        }
        out += group_text(printed);
    }
    return out;
}

}  // namespace

Result<int> verb_seccomp_show(const SeccompShowOptions& options, const CommandLine& /*line*/) {
    if (options.profile.empty()) {
        TRY(print(list_of_profiles()));
        return 0;
    }
    const Profile profile = TRY(find_explained_profile(options.profile));
    TRY(print(options.json ? json_text(to_json(profile.seccomp)) : readable(profile)));
    return 0;
}

Result<int> verb_seccomp_diff(const SeccompDiffOptions& options, const CommandLine& /*line*/) {
    const Profile from = TRY(find_explained_profile(options.from));
    const Profile to = TRY(find_explained_profile(options.to));
    TRY(print(concat(difference(options, allowed_only_by(to, from)), "\n",
                     difference({options.to, options.from}, allowed_only_by(from, to)))));
    return 0;
}

}  // namespace pinfold
