// Clocks, network interfaces, and the small files of /proc/self as they are.
#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "report.hpp"
#include "text.hpp"

namespace probe {

namespace {

long seconds_of(clockid_t clock) {
    timespec now{};
    ::clock_gettime(clock, &now);
    return now.tv_sec;
}

short flags_of(const char* interface) {
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return 0;
    ifreq request{};
    std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
    const int status = ::ioctl(fd, SIOCGIFFLAGS, &request);
    ::close(fd);
    return status == 0 ? request.ifr_flags : short{0};
}

}  // namespace

Object clocks() {
    Object out;
    return out.add("monotonic", seconds_of(CLOCK_MONOTONIC)).add("boottime", seconds_of(CLOCK_BOOTTIME));
}

List interfaces() {
    List out;
    struct if_nameindex* all = ::if_nameindex();
    if (all == nullptr) return out;
    for (const struct if_nameindex* entry = all; entry->if_index != 0; ++entry) {
        const short flags = flags_of(entry->if_name);
        Object interface;
        interface.add("name", entry->if_name)
            .add("up", (flags & IFF_UP) != 0)
            .add("loopback", (flags & IFF_LOOPBACK) != 0);
        out.add(interface);
    }
    ::if_freenameindex(all);
    return out;
}

Object proc_files() {
    Object out;
    for (const char* name :
         {"uid_map", "gid_map", "setgroups", "oom_score_adj", "timens_offsets", "cgroup", "comm", "attr/current"}) {
        if (const auto text = read_file(std::string("/proc/self/") + name)) out.add(name, *text);
    }
    const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    out.add("controlling_terminal", terminal >= 0);
    if (terminal >= 0) ::close(terminal);
    return out;
}

}  // namespace probe
