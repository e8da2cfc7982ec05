// The way back of parse_seccomp.cpp.
#include "spec/write_seccomp.hpp"

namespace pinfold {

namespace {

Json arg_json(const SyscallArg& arg) {
    Json::Object out = {{"index", json_of(arg.index)}, {"value", json_of(arg.value)}};
    if (arg.value_two != 0 || arg.op == "SCMP_CMP_MASKED_EQ") out.push_back({"valueTwo", json_of(arg.value_two)});
    out.push_back({"op", json_of(arg.op)});
    return Json{std::move(out)};
}

Json rule_json(const SyscallRule& rule) {
    Json::Object out = {{"names", json_of(rule.names)}, {"action", json_of(rule.action)}};
    if (rule.errno_ret) out.push_back({"errnoRet", json_of(*rule.errno_ret)});
    if (!rule.args.empty()) out.push_back({"args", json_of(rule.args, arg_json)});
    return Json{std::move(out)};
}

}  // namespace

Json to_json(const Seccomp& seccomp) {
    Json::Object out = {{"defaultAction", json_of(seccomp.default_action)}};
    if (seccomp.default_errno_ret) out.push_back({"defaultErrnoRet", json_of(*seccomp.default_errno_ret)});
    if (!seccomp.flags.empty()) out.push_back({"flags", json_of(seccomp.flags)});
    if (!seccomp.listener_path.empty()) out.push_back({"listenerPath", json_of(seccomp.listener_path)});
    if (!seccomp.listener_metadata.empty()) out.push_back({"listenerMetadata", json_of(seccomp.listener_metadata)});
    if (!seccomp.architectures.empty()) out.push_back({"architectures", json_of(seccomp.architectures)});
    out.push_back({"syscalls", json_of(seccomp.syscalls, rule_json)});
    return Json{std::move(out)};
}

}  // namespace pinfold
