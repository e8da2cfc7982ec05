// The seccomp section of config.json.
#include "spec/parse.hpp"

namespace pinfold {

static void read(const Reader& object, SyscallArg& arg) {
    object.required("index", arg.index);
    object.required("value", arg.value);
    object.optional("valueTwo", arg.value_two);
    object.required("op", arg.op);
}

static void read(const Reader& object, SyscallRule& rule) {
    object.required("names", rule.names);
    object.required("action", rule.action);
    object.optional("errnoRet", rule.errno_ret);
    object.optional("args", rule.args);
}

void read(const Reader& object, Seccomp& seccomp) {
    object.required("defaultAction", seccomp.default_action);
    object.optional("defaultErrnoRet", seccomp.default_errno_ret);
    object.optional("flags", seccomp.flags);
    object.optional("listenerPath", seccomp.listener_path);
    object.optional("listenerMetadata", seccomp.listener_metadata);
    object.optional("architectures", seccomp.architectures);
    object.optional("syscalls", seccomp.syscalls);
}

}  // namespace pinfold
