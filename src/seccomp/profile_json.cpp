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

Json rule_json(const SyscallRule& rule) {
    Json::Object out = {{"names", list(rule.names, text)}, {"action", text(rule.action)}};
    if (rule.errno_ret) out.push_back({"errnoRet", number(*rule.errno_ret)});
    if (!rule.args.empty()) out.push_back({"args", list(rule.args, arg_json)});
    return Json{std::move(out)};
}

}  // namespace

Json to_json(const Seccomp& seccomp) {
    Json::Object out = {{"defaultAction", text(seccomp.default_action)}};
    if (seccomp.default_errno_ret) out.push_back({"defaultErrnoRet", number(*seccomp.default_errno_ret)});
    if (!seccomp.flags.empty()) out.push_back({"flags", list(seccomp.flags, text)});
    if (!seccomp.listener_path.empty()) out.push_back({"listenerPath", text(seccomp.listener_path)});
    if (!seccomp.listener_metadata.empty()) out.push_back({"listenerMetadata", text(seccomp.listener_metadata)});
    if (!seccomp.architectures.empty()) out.push_back({"architectures", list(seccomp.architectures, text)});
    out.push_back({"syscalls", list(seccomp.syscalls, rule_json)});
    return Json{std::move(out)};
}

}  // namespace pinfold
