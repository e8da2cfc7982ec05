// Wrong configurations, each with exactly what is said of it: path, what was found, what is allowed.
#include <string>
#include <vector>

#include "documents.hpp"
#include "spec/parse.hpp"
#include "spec/resources.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using testing::Edit;

namespace {

struct Row {
    std::vector<Edit> edits;
    std::vector<std::string> expected;
};

void check_all(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        std::string what;
        for (const Edit& edit : row.edits) what += std::string(edit.path) + " = " + std::string(edit.value) + "; ";
        CAPTURE(what);
        CHECK(testing::problems_of(testing::edited(testing::good_config(), row.edits)) == row.expected);
    }
}

constexpr std::string_view kNewUser = R"({"type": "user"})";
constexpr std::string_view kJoinedUser = R"({"type": "user", "path": "/proc/1/ns/user"})";
constexpr std::string_view kMapping = R"([{"containerID": 0, "hostID": 1000, "size": 10}])";
constexpr std::string_view kActions =
    "SCMP_ACT_KILL, SCMP_ACT_KILL_PROCESS, SCMP_ACT_KILL_THREAD, SCMP_ACT_TRAP, SCMP_ACT_ERRNO, SCMP_ACT_TRACE, "
    "SCMP_ACT_ALLOW, SCMP_ACT_LOG, SCMP_ACT_NOTIFY";

const std::string kLongName(65, 'x');

}  // namespace

TEST_CASE("spec: the good configuration of these tests is good") { check_all({{{}, {}}}); }

TEST_CASE("spec: wrong at the top") {
    const std::string long_name = "\"" + kLongName + "\"";
    check_all({
        {{{"ociVersion", ""}}, {"ociVersion: missing, required: a string"}},
        {{{"ociVersion", "1"}}, {"ociVersion: found 1, allowed: a string"}},
        {{{"ociVersion", R"("0.5.0-dev")"}}, {R"(ociVersion: found "0.5.0-dev", allowed: a semantic version 1.x.y)"}},
        {{{"ociVersion", R"("2.0.0")"}}, {R"(ociVersion: found "2.0.0", allowed: a semantic version 1.x.y)"}},
        {{{"ociVersion", R"("1.0")"}}, {R"(ociVersion: found "1.0", allowed: a semantic version 1.x.y)"}},
        {{{"ociVersion", R"("1.02.0")"}}, {R"(ociVersion: found "1.02.0", allowed: a semantic version 1.x.y)"}},
        {{{"ociVersion", R"("1.0.0-")"}}, {R"(ociVersion: found "1.0.0-", allowed: a semantic version 1.x.y)"}},
        {{{"ociVersion", R"("1.0.0+a..b")"}}, {R"(ociVersion: found "1.0.0+a..b", allowed: a semantic version 1.x.y)"}},
        {{{"root", ""}}, {"root.path: missing, required: the path of the root file system"}},
        {{{"root.path", ""}}, {"root.path: missing, required: a string"}},
        {{{"root.path", R"("")"}}, {"root.path: missing, required: the path of the root file system"}},
        {{{"root", "[]"}}, {"root: found an array, allowed: an object"}},
        {{{"root.readonly", R"("yes")"}}, {R"(root.readonly: found "yes", allowed: true or false)"}},
        {{{"hostname", "12"}}, {"hostname: found 12, allowed: a string"}},
        {{{"hostname", R"("a\u0000b")"}}, {R"(hostname: found "a\u0000b", allowed: a string without NUL)"}},
        {{{"hostname", long_name}}, {"hostname: found \"" + kLongName + "\", allowed: at most 64 bytes"}},
        {{{"domainname", long_name}}, {"domainname: found \"" + kLongName + "\", allowed: at most 64 bytes"}},
        {{{"hostname", R"("h")"}, {"domainname", R"("d")"}, {"linux.namespaces[4]", R"({"type": "cgroup"})"}},
         {"hostname: needs a uts namespace: it would rename the host",
          "domainname: needs a uts namespace: it would rename the host"}},
        {{{"annotations", R"({"": "x"})"}}, {R"(annotations[""]: a name must not be empty)"}},
        {{{"annotations", R"({"a.b": 1})"}}, {R"(annotations["a.b"]: found 1, allowed: a string)"}},
        {{{"annotations", R"({"a\u0000b": "x"})"}}, {R"(annotations["a\u0000b"]: the name holds a NUL)"}},
        {{{"linux", "true"}}, {"linux: found true, allowed: an object"}},
    });
}

TEST_CASE("spec: wrong mounts") {
    check_all({
        {{{"mounts", R"({"destination": "/x"})"}}, {"mounts: found an object, allowed: an array"}},
        {{{"mounts[0]", "null"}}, {"mounts[0]: found null, allowed: an object"}},
        {{{"mounts[0].type", R"("tmpfs")"}}, {"mounts[0].destination: missing, required: a string"}},
        {{{"mounts[0].destination", R"("")"}}, {R"(mounts[0].destination: found "", allowed: a path)"}},
        {{{"mounts[0].destination", R"("/")"}},
         {R"(mounts[0].destination: found "/", allowed: a path below the root)"}},
        {{{"mounts[0].destination", R"("//")"}},
         {R"(mounts[0].destination: found "//", allowed: a path below the root)"}},
        {{{"mounts[0].destination", R"("/.")"}},
         {R"(mounts[0].destination: found "/.", allowed: a path below the root)"}},
        {{{"mounts[0].destination", R"(".")"}},
         {R"(mounts[0].destination: found ".", allowed: a path below the root)"}},
        {{{"mounts[0].destination", R"("/a/..")"}},
         {R"(mounts[0].destination: found "/a/..", allowed: a path below the root)"}},
        {{{"mounts[0].destination", R"("/../a/../..")"}},
         {R"(mounts[0].destination: found "/../a/../..", allowed: a path below the root)"}},
        {{{"mounts[0].destination", R"("/a\u0000b")"}},
         {R"(mounts[0].destination: found "/a\u0000b", allowed: a string without NUL)"}},
        {{{"mounts[0].destination", R"("/a")"}, {"mounts[0].options", R"(["ro", 1])"}},
         {"mounts[0].options[1]: found 1, allowed: a string"}},
        {{{"mounts[0].destination", R"("/a")"}, {"mounts[0].options", R"("ro")"}},
         {R"(mounts[0].options: found "ro", allowed: an array)"}},
        {{{"mounts[0].destination", R"("/a")"}, {"mounts[0].type", R"("bind")"}, {"mounts[0].uidMappings", kMapping}},
         {"mounts[0].gidMappings: missing, required: ranges, since uidMappings has some"}},
        {{{"mounts[0].destination", R"("/a")"}, {"mounts[0].type", R"("bind")"}, {"mounts[0].gidMappings", kMapping}},
         {"mounts[0].uidMappings: missing, required: ranges, since gidMappings has some"}},
        {{{"mounts[0].destination", R"("/a")"}, {"mounts[0].options", R"(["rbind", "ridmap"])"}},
         {"mounts[0].options: idmap needs uidMappings and gidMappings, or a user namespace"}},
        {{{"mounts[0]", R"({"destination": "/a", "type": "tmpfs", "options": ["idmap"]})"}},
         {"mounts[0].options: ids can be mapped for bind mounts only"}},
        {{{"mounts[0]", R"({"destination": "/a", "type": "bind", "options": ["remount", "ridmap"]})"}},
         {"mounts[0].options: ids can be mapped for bind mounts only"}},
        {{{"mounts[0]", R"({"destination": "/a", "type": "bind", "options": ["tmpcopyup"]})"}},
         {"mounts[0].options: tmpcopyup needs a new file system, such as a tmpfs"}},
        {{{"mounts[0]", R"({"destination": "/a", "type": "tmpfs", "options": ["rbind", "tmpcopyup"]})"}},
         {"mounts[0].options: tmpcopyup needs a new file system, such as a tmpfs"}},
    });
}

TEST_CASE("spec: wrong processes") {
    check_all({
        {{{"process", ""}}, {"process: missing, required: the process to run"}},
        {{{"process", "[]"}}, {"process: found an array, allowed: an object"}},
        {{{"process.args", ""}}, {"process.args: missing, required: the program to run and its arguments"}},
        {{{"process.args", "[]"}}, {"process.args: missing, required: the program to run and its arguments"}},
        {{{"process.args", R"("sh")"}}, {R"(process.args: found "sh", allowed: an array)"}},
        {{{"process.args", R"(["", "x"])"}}, {R"(process.args[0]: found "", allowed: the program to run)"}},
        {{{"process.args[1]", R"("a\u0000b")"}},
         {R"(process.args[1]: found "a\u0000b", allowed: a string without NUL)"}},
        {{{"process.cwd", ""}}, {"process.cwd: missing, required: a string"}},
        {{{"process.cwd", R"("tmp")"}}, {R"(process.cwd: found "tmp", allowed: an absolute path)"}},
        {{{"process.env", R"(["A=", "B", "=C"])"}},
         {R"(process.env[1]: found "B", allowed: NAME=VALUE)", R"(process.env[2]: found "=C", allowed: NAME=VALUE)"}},
        {{{"process.env[0]", R"("A=\u0000")"}}, {R"(process.env[0]: found "A=\u0000", allowed: a string without NUL)"}},
        {{{"process.terminal", "1"}}, {"process.terminal: found 1, allowed: true or false"}},
        {{{"process.consoleSize.height", "25"}}, {"process.consoleSize.width: missing, required: a whole number"}},
        {{{"process.terminal", "true"}, {"process.consoleSize", R"({"height": 65536, "width": 80})"}},
         {"process.consoleSize.height: found 65536, allowed: 0 to 65535"}},
        {{{"process.user.uid", "-1"}}, {"process.user.uid: found -1, allowed: a whole number from 0 to 4294967295"}},
        {{{"process.user.gid", "4294967296"}},
         {"process.user.gid: found 4294967296, allowed: a whole number from 0 to 4294967295"}},
        {{{"process.user.uid", "1.5"}}, {"process.user.uid: found 1.5, allowed: a whole number from 0 to 4294967295"}},
        {{{"process.user.uid", R"("0")"}},
         {R"(process.user.uid: found "0", allowed: a whole number from 0 to 4294967295)"}},
        {{{"process.user.additionalGids", "[5, true]"}},
         {"process.user.additionalGids[1]: found true, allowed: a whole number from 0 to 4294967295"}},
        {{{"process.user.umask", "512"}}, {"process.user.umask: found 512, allowed: 0 to 511"}},
        {{{"process.capabilities", R"(["CAP_KILL"])"}}, {"process.capabilities: found an array, allowed: an object"}},
        {{{"process.oomScoreAdj", "1001"}}, {"process.oomScoreAdj: found 1001, allowed: -1000 to 1000"}},
        {{{"process.oomScoreAdj", "-1001"}}, {"process.oomScoreAdj: found -1001, allowed: -1000 to 1000"}},
        {{{"process.ioPriority.class", R"("IOPRIO_CLASS_NONE")"}},
         {R"(process.ioPriority.class: found "IOPRIO_CLASS_NONE", allowed: IOPRIO_CLASS_RT, IOPRIO_CLASS_BE, )"
          "IOPRIO_CLASS_IDLE"}},
        {{{"process.ioPriority", R"({"class": "IOPRIO_CLASS_RT", "priority": 8})"}},
         {"process.ioPriority.priority: found 8, allowed: 0 to 7"}},
    });
}

TEST_CASE("spec: wrong resource limits of a process") {
    const std::string known =
        "RLIMIT_AS, RLIMIT_CORE, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_LOCKS, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, "
        "RLIMIT_NICE, RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_RSS, RLIMIT_RTPRIO, RLIMIT_RTTIME, RLIMIT_SIGPENDING, "
        "RLIMIT_STACK";
    check_all({
        {{{"process.rlimits[0]", R"({"type": "RLIMIT_CPU", "soft": 1})"}},
         {"process.rlimits[0].hard: missing, required: a whole number"}},
        {{{"process.rlimits[0]", R"({"type": "RLIMIT_FOO", "soft": 1, "hard": 1})"}},
         {"process.rlimits[0].type: found \"RLIMIT_FOO\", allowed: " + known}},
        {{{"process.rlimits[0]", R"({"type": "RLIMIT_CPU", "soft": 2, "hard": 1})"}},
         {"process.rlimits[0].soft: found 2, allowed: at most the hard limit, 1"}},
        {{{"process.rlimits[0]", R"({"type": "RLIMIT_CPU", "soft": 1, "hard": 18446744073709551616})"}},
         {"process.rlimits[0].hard: found 1.8446744073709552e+19, allowed: a whole number from 0 to "
          "18446744073709551615"}},
        {{{"process.rlimits", R"([{"type": "RLIMIT_CPU", "soft": 1, "hard": 1},
                                  {"type": "RLIMIT_CPU", "soft": 1, "hard": 1}])"}},
         {"process.rlimits[1].type: RLIMIT_CPU is given twice"}},
    });
}

TEST_CASE("spec: wrong schedulers") {
    check_all({
        {{{"process.execCPUAffinity", R"({"initial": "all", "final": "3-1"})"}},
         {R"(process.execCPUAffinity.initial: found "all", allowed: a list such as 0-3,7)",
          R"(process.execCPUAffinity.final: found "3-1", allowed: a list such as 0-3,7)"}},
        {{{"process.scheduler", R"({"nice": 1})"}}, {"process.scheduler.policy: missing, required: a string"}},
        {{{"process.scheduler", R"({"policy": "SCHED_FOO"})"}},
         {R"(process.scheduler.policy: found "SCHED_FOO", allowed: SCHED_OTHER, SCHED_FIFO, SCHED_RR, SCHED_BATCH, )"
          "SCHED_ISO, SCHED_IDLE, SCHED_DEADLINE"}},
        {{{"process.scheduler", R"({"policy": "SCHED_BATCH", "flags": ["X"]})"}},
         {R"(process.scheduler.flags[0]: found "X", allowed: SCHED_FLAG_RESET_ON_FORK, SCHED_FLAG_RECLAIM, )"
          "SCHED_FLAG_DL_OVERRUN, SCHED_FLAG_KEEP_POLICY, SCHED_FLAG_KEEP_PARAMS, SCHED_FLAG_UTIL_CLAMP_MIN, "
          "SCHED_FLAG_UTIL_CLAMP_MAX"}},
        {{{"process.scheduler", R"({"policy": "SCHED_OTHER", "nice": 20})"}},
         {"process.scheduler.nice: found 20, allowed: -20 to 19"}},
        {{{"process.scheduler", R"({"policy": "SCHED_OTHER", "priority": 1})"}},
         {"process.scheduler.priority: found 1, allowed: 0, except for SCHED_FIFO and SCHED_RR"}},
        {{{"process.scheduler", R"({"policy": "SCHED_FIFO"})"}},
         {"process.scheduler.priority: found 0, allowed: 1 to 99"}},
        {{{"process.scheduler", R"({"policy": "SCHED_RR", "priority": 5, "period": 5})"}},
         {"process.scheduler: runtime, deadline and period are for SCHED_DEADLINE only"}},
    });
}

TEST_CASE("spec: wrong hooks") {
    check_all({
        {{{"hooks.prestart", R"([{"args": ["x"]}])"}}, {"hooks.prestart[0].path: missing, required: a string"}},
        {{{"hooks.poststop", R"([{"path": "/a"}, {"path": "b"}])"}},
         {R"(hooks.poststop[1].path: found "b", allowed: an absolute path)"}},
        {{{"hooks.createRuntime", R"([{"path": "/a", "timeout": 0}])"}},
         {"hooks.createRuntime[0].timeout: found 0, allowed: seconds, more than 0"}},
        {{{"hooks.createContainer", R"([{"path": "/a", "timeout": "5"}])"}},
         {R"(hooks.createContainer[0].timeout: found "5", allowed: a whole number from -9223372036854775808 to )"
          "9223372036854775807"}},
        {{{"hooks.startContainer", "{}"}}, {"hooks.startContainer: found an object, allowed: an array"}},
        {{{"hooks.poststart", R"(["/a"])"}}, {R"(hooks.poststart[0]: found "/a", allowed: an object)"}},
    });
}

TEST_CASE("spec: wrong namespaces") {
    const std::string types = "mount, pid, network, uts, ipc, user, cgroup, time";
    check_all({
        {{{"linux.namespaces[2]", "{}"}}, {"linux.namespaces[2].type: missing, required: " + types}},
        {{{"linux.namespaces[2].type", R"("foo")"}}, {"linux.namespaces[2].type: found \"foo\", allowed: " + types}},
        {{{"linux.namespaces[2].type", "3"}}, {"linux.namespaces[2].type: found 3, allowed: " + types}},
        // Nothing is said of the mount namespace that follows a type that could not be read.
        {{{"linux.namespaces", R"([{"type": "x"}, {"type": "mount"}])"}},
         {"linux.namespaces[0].type: found \"x\", allowed: " + types}},
        {{{"linux.namespaces[5]", R"({"type": "pid", "path": "/proc/1/ns/pid"})"}},
         {"linux.namespaces[5].type: this type is given twice"}},
        {{{"linux.namespaces[2].path", R"("ns/net")"}},
         {R"(linux.namespaces[2].path: found "ns/net", allowed: an absolute path)"}},
        {{{"linux.namespaces[1].path", R"("/proc/1/ns/pid")"},
          {"linux.namespaces[5]", kNewUser},
          {"linux.uidMappings", kMapping},
          {"linux.gidMappings", kMapping}},
         {"linux.namespaces[1].path: is joined with the user namespace that owns it, not with a new one"}},
        {{{"linux.uidMappings", kMapping}, {"linux.gidMappings", kMapping}},
         {"linux.uidMappings: needs a user namespace in linux.namespaces",
          "linux.gidMappings: needs a user namespace in linux.namespaces"}},
        {{{"linux.namespaces[5]", kNewUser}, {"linux.uidMappings", kMapping}},
         {"linux.gidMappings: missing, required: at least one range for the new user namespace"}},
        {{{"linux.namespaces[5]", kNewUser}, {"linux.gidMappings", kMapping}, {"linux.uidMappings", "[{}]"}},
         {"linux.uidMappings[0].containerID: missing, required: a whole number",
          "linux.uidMappings[0].hostID: missing, required: a whole number",
          "linux.uidMappings[0].size: missing, required: a whole number"}},
        {{{"linux.timeOffsets.monotonic.secs", "5"}},
         {"linux.timeOffsets: needs a new time namespace in linux.namespaces"}},
        {{{"linux.timeOffsets.monotonic.secs", "5"},
          {"linux.namespaces[5]", R"({"type": "time", "path": "/proc/1/ns/time"})"}},
         {"linux.timeOffsets: needs a new time namespace in linux.namespaces"}},
        {{{"linux.timeOffsets.realtime.secs", "5"}, {"linux.namespaces[5]", R"({"type": "time"})"}},
         {"linux.timeOffsets.realtime: no such clock, allowed: boottime, monotonic"}},
        {{{"linux.timeOffsets.boottime.nanosecs", "1000000000"}, {"linux.namespaces[5]", R"({"type": "time"})"}},
         {"linux.timeOffsets.boottime.nanosecs: found 1000000000, allowed: 0 to 999999999"}},
    });
}

TEST_CASE("spec: wrong id mappings") {
    const auto with = [](std::string_view uids) {
        return std::vector<Edit>{
            {"linux.namespaces[5]", kNewUser}, {"linux.gidMappings", kMapping}, {"linux.uidMappings", uids}};
    };
    std::string many = "[";
    for (int i = 0; i < 341; ++i) {
        const std::string id = std::to_string(i);
        many.append(R"({"containerID": )").append(id).append(R"(, "hostID": )").append(id);
        many.append(R"(, "size": 1})").append(i < 340 ? "," : "]");
    }
    check_all({
        {with(R"([{"containerID": 0, "hostID": 0, "size": 0}])"),
         {"linux.uidMappings[0].size: found 0, allowed: 1 or more"}},
        {with(R"([{"containerID": 1, "hostID": 0, "size": 4294967295}])"),
         {"linux.uidMappings[0]: 4294967295 ids from 1 on go beyond the last id"}},
        {with(R"([{"containerID": 0, "hostID": 4294967290, "size": 6}])"),
         {"linux.uidMappings[0]: 6 ids from 4294967290 on go beyond the last id"}},
        {with(R"([{"containerID": 0, "hostID": 0, "size": 10}, {"containerID": 9, "hostID": 100, "size": 1}])"),
         {"linux.uidMappings[1]: container ids overlap those of linux.uidMappings[0]"}},
        {with(R"([{"containerID": 5, "hostID": 105, "size": 5}, {"containerID": 20, "hostID": 100, "size": 6}])"),
         {"linux.uidMappings[1]: host ids overlap those of linux.uidMappings[0]"}},
        {with(many), {"linux.uidMappings: found 341 ranges, allowed: at most 340"}},
    });
}

TEST_CASE("spec: wrong kernel settings") {
    check_all({
        {{{"linux.sysctl", R"({"net.ipv4.ip_forward": 1})"}},
         {R"(linux.sysctl["net.ipv4.ip_forward"]: found 1, allowed: a string)"}},
        {{{"linux.sysctl", R"({"kernel.core_pattern": "|/x"})"}},
         {R"(linux.sysctl["kernel.core_pattern"]: belongs to no namespace: it would change the host)"}},
        {{{"linux.sysctl", R"({"kernel/core_pattern": "|/x", "vm.swappiness": "0"})"}},
         {R"(linux.sysctl["kernel/core_pattern"]: belongs to no namespace: it would change the host)",
          R"(linux.sysctl["vm.swappiness"]: belongs to no namespace: it would change the host)"}},
        {{{"linux.sysctl", R"({"kernel.hostname": "x"})"}},
         {R"(linux.sysctl["kernel.hostname"]: to be set with the property hostname)"}},
        {{{"linux.sysctl", R"({"net/../kernel/core_pattern": "x", "net.//.kernel": "x", "": "x", "net.": "x"})"}},
         {R"(linux.sysctl[""]: not the name of a setting)", R"(linux.sysctl["net."]: not the name of a setting)",
          R"(linux.sysctl["net.//.kernel"]: not the name of a setting)",
          R"(linux.sysctl["net/../kernel/core_pattern"]: not the name of a setting)"}},
        {{{"linux.namespaces", "[]"},
          {"linux.sysctl",
           R"({"fs.mqueue.msg_max": "1", "kernel.domainname": "x", "kernel.sem": "1", "kernel.shmmax": "1",
               "kernel/msgmax": "1", "net.core.somaxconn": "1", "net/ipv4/conf/eth0.1/forwarding": "1"})"}},
         {R"(linux.sysctl["fs.mqueue.msg_max"]: needs an ipc namespace: it would change the host)",
          R"(linux.sysctl["kernel.domainname"]: needs a uts namespace: it would change the host)",
          R"(linux.sysctl["kernel.sem"]: needs an ipc namespace: it would change the host)",
          R"(linux.sysctl["kernel.shmmax"]: needs an ipc namespace: it would change the host)",
          R"(linux.sysctl["kernel/msgmax"]: needs an ipc namespace: it would change the host)",
          R"(linux.sysctl["net.core.somaxconn"]: needs a network namespace: it would change the host)",
          R"(linux.sysctl["net/ipv4/conf/eth0.1/forwarding"]: needs a network namespace: it would change the host)"}},
    });
}

TEST_CASE("spec: wrong devices") {
    check_all({
        {{{"linux.devices[0]", R"({"type": "c", "major": 1, "minor": 3})"}},
         {"linux.devices[0].path: missing, required: a string"}},
        {{{"linux.devices[0]", R"({"path": "/dev/x", "type": "d", "major": 1, "minor": 3})"}},
         {R"(linux.devices[0].type: found "d", allowed: c, b, u, p)"}},
        {{{"linux.devices[0]", R"({"path": "dev/x", "type": "c", "major": 1, "minor": 3})"}},
         {R"(linux.devices[0].path: found "dev/x", allowed: an absolute path)"}},
        {{{"linux.devices[0]", R"({"path": "/dev/x", "type": "b"})"}},
         {"linux.devices[0].major: missing, required: a whole number",
          "linux.devices[0].minor: missing, required: a whole number"}},
        {{{"linux.devices[0]", R"({"path": "/dev/x", "type": "u", "major": -1, "minor": 1048576})"}},
         {"linux.devices[0].major: found -1, allowed: 0 to 4095",
          "linux.devices[0].minor: found 1048576, allowed: 0 to 1048575"}},
        {{{"linux.devices[0]", R"({"path": "/dev/x", "type": "p", "fileMode": 65536})"}},
         {"linux.devices[0].fileMode: found 65536, allowed: 0 to 65535"}},
        {{{"linux.netDevices", R"({"eth0": {"name": 23}, "a/b": {}, "eth1": {"name": "16-bytes-exactly"}})"}},
         {"linux.netDevices.eth0.name: found 23, allowed: a string",
          R"(linux.netDevices["a/b"]: found "a/b", allowed: an interface name: 1 to 15 bytes, no '/')",
          R"(linux.netDevices.eth1.name: found "16-bytes-exactly", allowed: an interface name: 1 to 15 bytes, )"
          "no '/'"}},
        {{{"linux.netDevices", R"({"eth0": {}, "eth1": {"name": "eth0"}})"}},
         {"linux.netDevices.eth1: a second device of the name eth0"}},
    });
}

TEST_CASE("spec: wrong resources") {
    check_all({
        {{{"linux.resources", R"("none")"}}, {R"(linux.resources: found "none", allowed: an object)"}},
        {{{"linux.resources.devices[0]", R"({"access": "r"})"}},
         {"linux.resources.devices[0].allow: missing, required: true or false"}},
        {{{"linux.resources.devices[0]", R"({"allow": true, "type": "p"})"}},
         {R"(linux.resources.devices[0].type: found "p", allowed: a, b, c)"}},
        {{{"linux.resources.devices[0]", R"({"allow": true, "access": "rx", "major": -2, "minor": -1})"}},
         {R"(linux.resources.devices[0].access: found "rx", allowed: letters of rwm)",
          "linux.resources.devices[0].major: found -2, allowed: 0 or more"}},
        {{{"linux.resources.memory.limit", "9223372036854775808"}},
         {"linux.resources.memory.limit: found 9223372036854775808, allowed: a whole number from "
          "-9223372036854775808 to 9223372036854775807"}},
        {{{"linux.resources.memory.limit", R"("64M")"}},
         {R"(linux.resources.memory.limit: found "64M", allowed: a whole number from -9223372036854775808 to )"
          "9223372036854775807"}},
        {{{"linux.resources.memory.swappiness", "101"}},
         {"linux.resources.memory.swappiness: found 101, allowed: 0 to 100"}},
        {{{"linux.resources.cpu.shares", "-5"}},
         {"linux.resources.cpu.shares: found -5, allowed: a whole number from 0 to 18446744073709551615"}},
        {{{"linux.resources.cpu", R"({"quota": 1000, "burst": 1001, "idle": 2})"}},
         {"linux.resources.cpu.burst: found 1001, allowed: at most the quota, 1000",
          "linux.resources.cpu.idle: found 2, allowed: 0 to 1"}},
        {{{"linux.resources.pids", "32"}}, {"linux.resources.pids: found 32, allowed: an object"}},
        {{{"linux.resources.blockIO.weight", "65536"}},
         {"linux.resources.blockIO.weight: found 65536, allowed: a whole number from 0 to 65535"}},
        {{{"linux.resources.blockIO", R"({"weight": 9, "leafWeight": 1001, "weightDevice": [
                                          {"major": 8, "minor": 0, "weight": 0, "leafWeight": 1001}]})"}},
         {"linux.resources.blockIO.weight: found 9, allowed: 10 to 1000",
          "linux.resources.blockIO.leafWeight: found 1001, allowed: 10 to 1000",
          "linux.resources.blockIO.weightDevice[0].leafWeight: found 1001, allowed: 10 to 1000"}},
        {{{"linux.resources.blockIO.weightDevice[0]", R"({"major": 8, "minor": 0})"}},
         {"linux.resources.blockIO.weightDevice[0]: missing, required: weight or leafWeight"}},
        {{{"linux.resources.blockIO.throttleReadBpsDevice[0]", R"({"major": 8, "minor": 0})"}},
         {"linux.resources.blockIO.throttleReadBpsDevice[0].rate: missing, required: a whole number"}},
        {{{"linux.resources.hugepageLimits", R"([{"pageSize": "64kB", "limit": 1}, {"pageSize": "02MB", "limit": 1},
                                                 {"pageSize": "MB", "limit": 1}, {"pageSize": "2MB", "limit": 1}])"}},
         {R"(linux.resources.hugepageLimits[0].pageSize: found "64kB", allowed: a number and KB, MB or GB)",
          R"(linux.resources.hugepageLimits[1].pageSize: found "02MB", allowed: a number and KB, MB or GB)",
          R"(linux.resources.hugepageLimits[2].pageSize: found "MB", allowed: a number and KB, MB or GB)"}},
        {{{"linux.resources.rdma", R"({"mlx5_1": {}})"}},
         {"linux.resources.rdma.mlx5_1: missing, required: hcaHandles or hcaObjects"}},
        {{{"linux.resources.unified", R"({"../x": "1", "memory.max": "1"})"}},
         {R"(linux.resources.unified["../x"]: not the name of a cgroup file)"}},
        {{{"linux.resources.unified", R"({"cgroup.freeze": "1", "cgroup.max.depth": "1"})"}},
         {R"(linux.resources.unified["cgroup.freeze"]: not a limit: it acts on processes or on other groups)"}},
        {{{"linux.resources.network.priorities[0]", R"({"name": "eth0"})"}},
         {"linux.resources.network.priorities[0].priority: missing, required: a whole number"}},
        {{{"linux.cgroupsPath", R"("/a/../b")"}},
         {R"(linux.cgroupsPath: found "/a/../b", allowed: a path without ..)"}},
        {{{"linux.cgroupsPath", R"("..")"}}, {R"(linux.cgroupsPath: found "..", allowed: a path without ..)"}},
    });
}

TEST_CASE("spec: wrong seccomp sections") {
    const auto rule = [](std::string_view text) {
        return std::vector<Edit>{{"linux.seccomp.defaultAction", R"("SCMP_ACT_ALLOW")"},
                                 {"linux.seccomp.syscalls[0]", text}};
    };
    const std::string at = "linux.seccomp.";
    check_all({
        {{{"linux.seccomp", "{}"}}, {at + "defaultAction: missing, required: a string"}},
        {{{"linux.seccomp.defaultAction", R"("ALLOW")"}},
         {at + "defaultAction: found \"ALLOW\", allowed: " + std::string(kActions)}},
        {{{"linux.seccomp.defaultAction", R"("SCMP_ACT_NOTIFY")"}, {"linux.seccomp.listenerPath", R"("/s")"}},
         {at + "defaultAction: SCMP_ACT_NOTIFY is for rules only"}},
        {{{"linux.seccomp", R"({"defaultAction": "SCMP_ACT_KILL", "defaultErrnoRet": 1})"}},
         {at + "defaultErrnoRet: not for SCMP_ACT_KILL, only for SCMP_ACT_ERRNO and SCMP_ACT_TRACE"}},
        {{{"linux.seccomp", R"({"defaultAction": "SCMP_ACT_ALLOW", "flags": ["X"]})"}},
         {at + "flags[0]: found \"X\", allowed: SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_FILTER_FLAG_LOG, "
               "SECCOMP_FILTER_FLAG_SPEC_ALLOW, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV"}},
        {{{"linux.seccomp", R"({"defaultAction": "SCMP_ACT_ALLOW", "listenerMetadata": "x"})"}},
         {at + "listenerMetadata: needs listenerPath"}},
        {rule(R"({"names": ["read"], "action": "SCMP_ACT_NOTIFY"})"),
         {at + "listenerPath: missing, required: a socket, since a rule has SCMP_ACT_NOTIFY"}},
        {rule(R"({"names": [], "action": "SCMP_ACT_ALLOW"})"),
         {at + "syscalls[0].names: missing, required: at least one system call"}},
        {rule(R"({"names": ["read", ""], "action": "SCMP_ACT_ALLOW"})"),
         {at + "syscalls[0].names[1]: found \"\", allowed: the name of a system call"}},
        {rule(R"({"names": ["read"], "action": "SCMP_ACT_DENY"})"),
         {at + "syscalls[0].action: found \"SCMP_ACT_DENY\", allowed: " + std::string(kActions)}},
        {rule(R"({"names": ["read"], "action": "SCMP_ACT_ALLOW", "errnoRet": 1})"),
         {at + "syscalls[0].errnoRet: not for SCMP_ACT_ALLOW, only for SCMP_ACT_ERRNO and SCMP_ACT_TRACE"}},
        {rule(R"({"names": ["read"], "action": "SCMP_ACT_LOG",
                  "args": [{"index": 6, "value": 0, "op": "SCMP_CMP_EQ"}]})"),
         {at + "syscalls[0].args[0].index: found 6, allowed: 0 to 5"}},
        {rule(R"({"names": ["read"], "action": "SCMP_ACT_LOG", "args": [{"index": 0, "value": 0, "op": "=="}]})"),
         {at + "syscalls[0].args[0].op: found \"==\", allowed: SCMP_CMP_NE, SCMP_CMP_LT, SCMP_CMP_LE, SCMP_CMP_EQ, "
               "SCMP_CMP_GE, SCMP_CMP_GT, SCMP_CMP_MASKED_EQ"}},
        {rule(R"({"names": ["read"], "action": "SCMP_ACT_LOG", "args": [{}]})"),
         {at + "syscalls[0].args[0].index: missing, required: a whole number",
          at + "syscalls[0].args[0].value: missing, required: a whole number",
          at + "syscalls[0].args[0].op: missing, required: a string"}},
    });
    const std::vector<std::string> unknown_architecture = testing::problems_of(testing::edited(
        testing::good_config(),
        {{"linux.seccomp", R"({"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64", "x86"]})"}}));
    REQUIRE(unknown_architecture.size() == 1);
    CHECK(unknown_architecture[0].starts_with(
        R"(linux.seccomp.architectures[1]: found "x86", allowed: SCMP_ARCH_X86, SCMP_ARCH_X86_64, SCMP_ARCH_X32, )"));
}

TEST_CASE("spec: the rest of what can be wrong in linux") {
    check_all({
        {{{"linux.maskedPaths", R"(["/proc/kcore", "proc/keys", ""])"}},
         {R"(linux.maskedPaths[1]: found "proc/keys", allowed: an absolute path)",
          R"(linux.maskedPaths[2]: found "", allowed: an absolute path)"}},
        {{{"linux.readonlyPaths", R"(["proc/sys"])"}},
         {R"(linux.readonlyPaths[0]: found "proc/sys", allowed: an absolute path)"}},
        {{{"linux.rootfsPropagation", R"("public")"}},
         {R"(linux.rootfsPropagation: found "public", allowed: private, shared, slave, unbindable, rprivate, rshared, )"
          "rslave, runbindable"}},
        {{{"linux.personality.flags", "[]"}}, {"linux.personality.domain: missing, required: a string"}},
        {{{"linux.personality", R"({"domain": "LINUX64"})"}},
         {R"(linux.personality.domain: found "LINUX64", allowed: LINUX, LINUX32)"}},
        {{{"linux.personality", R"({"domain": "LINUX", "flags": ["ADDR_NO_RANDOMIZE"]})"}},
         {R"(linux.personality.flags: found "ADDR_NO_RANDOMIZE", allowed: none)"}},
        {{{"linux.intelRdt", R"({"closID": "a/b", "memBwSchema": "L3:0=f"})"}},
         {R"(linux.intelRdt.closID: found "a/b", allowed: a name without '/')",
          R"(linux.intelRdt.memBwSchema: found "L3:0=f", allowed: one line that begins with MB:)"}},
        {{{"linux.intelRdt.closID", R"("..")"}}, {R"(linux.intelRdt.closID: found "..", allowed: a name without '/')"}},
        {{{"linux.memoryPolicy", R"({"mode": "MPOL_FOO", "nodes": "0"})"}},
         {R"(linux.memoryPolicy.mode: found "MPOL_FOO", allowed: MPOL_DEFAULT, MPOL_BIND, MPOL_INTERLEAVE, )"
          "MPOL_WEIGHTED_INTERLEAVE, MPOL_PREFERRED, MPOL_PREFERRED_MANY, MPOL_LOCAL"}},
        {{{"linux.memoryPolicy", R"({"mode": "MPOL_BIND"})"}},
         {"linux.memoryPolicy.nodes: missing, required: a list such as 0-3,7 with MPOL_BIND"}},
        {{{"linux.memoryPolicy", R"({"mode": "MPOL_LOCAL", "nodes": "0"})"}},
         {R"(linux.memoryPolicy.nodes: found "0", allowed: none with MPOL_LOCAL)"}},
        {{{"linux.memoryPolicy", R"({"mode": "MPOL_BIND", "nodes": "all"})"}},
         {R"(linux.memoryPolicy.nodes: found "all", allowed: a list such as 0-3,7)"}},
        {{{"linux.memoryPolicy", R"({"mode": "MPOL_BIND", "nodes": "0", "flags": ["MPOL_F_MOF"]})"}},
         {R"(linux.memoryPolicy.flags[0]: found "MPOL_F_MOF", allowed: MPOL_F_NUMA_BALANCING, MPOL_F_RELATIVE_NODES, )"
          "MPOL_F_STATIC_NODES"}},
    });
}

TEST_CASE("spec: what the specification or real engines ask to be tolerated") {
    check_all({
        {{{"ociVersion", R"("1.9.0-rc.1+dev-2")"}}, {}},
        {{{"ociVersion", R"("1.0.2+build")"}}, {}},
        {{{"unknown", "{}"}, {"linux.alsoUnknown", "[1]"}, {"process.new", "1"}}, {}},
        {{{"mounts", "null"}, {"hooks", "null"}, {"linux.seccomp", "null"}, {"process.capabilities", "null"}}, {}},
        {{{"mounts[0].destination", R"("relative/place")"}}, {}},
        {{{"mounts[0].destination", R"("/a/../../b/.")"}}, {}},
        {{{"mounts[0]", R"({"destination": "/", "options": ["remount", "ro"]})"}}, {}},
        {{{"mounts[0]", R"({"destination": "/a", "type": "bind", "options": ["bind", "x-unknown"]})"}}, {}},
        {{{"mounts[0]", R"({"destination": "/a", "type": "bind", "options": ["idmap"]})"},
          {"linux.namespaces[5]", kJoinedUser}},
         {}},
        {{{"process.capabilities.bounding", R"(["CAP_FROM_THE_FUTURE"])"}}, {}},
        {{{"process.env", R"(["a.b-c=1", "X Y=", "A==B", "A=1", "A=2"])"}}, {}},
        {{{"process.consoleSize", R"({"height": 99999999, "width": 0})"}}, {}},
        {{{"process.user", ""}}, {}},
        {{{"process.commandLine", "1"}, {"windows", "[]"}, {"solaris", "7"}}, {}},
        {{{"linux.resources.pids", "{}"}}, {}},
        {{{"linux.resources.devices[0]", R"({"allow": false, "major": -1, "minor": -1})"}}, {}},
        {{{"linux.devices[0]", R"({"path": "/run/fifo", "type": "p"})"}}, {}},
        {{{"linux.namespaces[5]", kJoinedUser}}, {}},
        {{{"linux.namespaces[5]", kJoinedUser}, {"linux.uidMappings", kMapping}, {"linux.gidMappings", kMapping}}, {}},
        {{{"linux.namespaces[5]", kNewUser},
          {"linux.uidMappings", R"([{"containerID": 0, "hostID": 0, "size": 4294967295}])"},
          {"linux.gidMappings", R"([{"containerID": 0, "hostID": 5, "size": 1},
                                    {"containerID": 1, "hostID": 6, "size": 9}])"}},
         {}},
        {{{"linux.rootfsPropagation", R"("rslave")"}}, {}},
        {{{"linux.cgroupsPath", R"("system.slice:docker:a..b")"}}, {}},
        {{{"linux.sysctl", R"({"net/ipv4/conf/eth0.1/forwarding": "1", "kernel.shm_rmid_forced": "1",
                               "fs.mqueue.msg_max": "9", "kernel.domainname": "d"})"}},
         {}},
        {{{"linux.memoryPolicy", R"({"mode": "MPOL_PREFERRED", "nodes": ""})"}}, {}},
    });
}

TEST_CASE("spec: -1 in a device rule means any number") {
    Problems problems;
    const Resources resources =
        parse_resources(testing::json(R"({"devices": [{"allow": true, "major": -1, "minor": 3}]})"), problems);
    CHECK(problems.empty());
    CHECK_FALSE(resources.devices[0].major);
    CHECK(resources.devices[0].minor == 3);
}
