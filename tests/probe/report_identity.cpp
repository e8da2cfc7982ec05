// Who the process is: process ids, user and group ids, namespaces, host names.
#include <dirent.h>
#include <grp.h>
#include <sys/fsuid.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <vector>

#include "report.hpp"
#include "text.hpp"

namespace probe {

Object process_ids() {
    Object out;
    out.add("pid", ::getpid()).add("ppid", ::getppid()).add("pgid", ::getpgrp()).add("sid", ::getsid(0));
    return out;
}

Object credentials() {
    uid_t ruid = 0, euid = 0, suid = 0;
    gid_t rgid = 0, egid = 0, sgid = 0;
    if (::getresuid(&ruid, &euid, &suid) != 0 || ::getresgid(&rgid, &egid, &sgid) != 0) return {};
    // An id that is no valid one changes nothing and returns the present one.
    const auto fsuid = static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1)));
    const auto fsgid = static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1)));
    std::vector<gid_t> groups(65536);
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    List group_list;
    for (int i = 0; i < count; ++i) group_list.add(groups[static_cast<size_t>(i)]);
    Object out;
    out.add("uid", List().add(ruid).add(euid).add(suid).add(fsuid));
    out.add("gid", List().add(rgid).add(egid).add(sgid).add(fsgid));
    out.add("groups", group_list);
    return out;
}

Object namespaces() {
    Object out;
    for (const char* name :
         {"cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "time_for_children", "user", "uts"}) {
        if (const auto target = read_link(std::string("/proc/self/ns/") + name)) out.add(name, *target);
    }
    return out;
}

Object hosts() {
    utsname names{};
    ::uname(&names);
    Object out;
    out.add("hostname", names.nodename).add("domainname", names.domainname).add("machine", names.machine);
    return out;
}

}  // namespace probe
