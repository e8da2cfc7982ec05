// A profile to JSON: the way back of spec/parse_seccomp.cpp.
#include "seccomp/profile.hpp"

namespace pinfold {

namespace {

Json text(const std::string& value) { return Json{value}; }
Json number(uint64_t value) { return Json{value}; }

template <class Item, class Convert>
Json list(const std::vector<Item>& items, Convert convert) {
    Json::Array array;
    for (const Item& item : items) array.push_back(convert(item));
    return Json{std::move(array)};
}

Json arg_json(const SyscallArg& arg) {
    Json::Object out = {{"index", number(arg.index)}, {"value", number(arg.value)}};
    if (arg.value_two != 0 || arg.op == "SCMP_CMP_MASKED_EQ") out.push_back({"valueTwo", number(arg.value_two)});
    out.push_back({"op", text(arg.op)});
    return Json{std::move(out)};
}

Json rule_json(const SyscallRule& rule, const RuleNote& note) {
    Json::Object out;
    if (!note.group.empty()) out.push_back({"group", text(note.group)});
    if (!note.reason.empty()) out.push_back({"reason", text(note.reason)});
    out.push_back({"names", list(rule.names, text)});
    out.push_back({"action", text(rule.action)});
    if (rule.errno_ret) out.push_back({"errnoRet", number(*rule.errno_ret)});
    if (!rule.args.empty()) out.push_back({"args", list(rule.args, arg_json)});
    return Json{std::move(out)};
}

// One note per rule.
Json::Object members_of(const Seccomp& seccomp, const std::vector<RuleNote>& notes) {
    Json::Object out = {{"defaultAction", text(seccomp.default_action)}};
    if (seccomp.default_errno_ret) out.push_back({"defaultErrnoRet", number(*seccomp.default_errno_ret)});
    if (!seccomp.flags.empty()) out.push_back({"flags", list(seccomp.flags, text)});
    if (!seccomp.listener_path.empty()) out.push_back({"listenerPath", text(seccomp.listener_path)});
    if (!seccomp.listener_metadata.empty()) out.push_back({"listenerMetadata", text(seccomp.listener_metadata)});
    if (!seccomp.architectures.empty()) out.push_back({"architectures", list(seccomp.architectures, text)});
    Json::Array rules;
    for (size_t i = 0; i < seccomp.syscalls.size(); ++i) rules.push_back(rule_json(seccomp.syscalls[i], notes[i]));
    out.push_back({"syscalls", Json{std::move(rules)}});
    return out;
}

}  // namespace

Json to_json(const Seccomp& seccomp) {
    return Json{members_of(seccomp, std::vector<RuleNote>(seccomp.syscalls.size()))};
}

Json to_json(const Profile& profile) {
    Json::Object out = members_of(profile.seccomp, profile.notes);
    if (!profile.description.empty()) out.insert(out.begin(), {"description", text(profile.description)});
    return Json{std::move(out)};
}

}  // namespace pinfold
