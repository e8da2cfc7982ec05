// Clocks, network interfaces, and the small files of /proc/self as they are.
#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
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

// One question about an interface; the answer is in the request.
ifreq ask(const char* name, unsigned long question) {
    ifreq request{};
    std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (::ioctl(fd, question, &request) != 0) request = {};
    ::close(fd);
    return request;
}

List addresses_of(const char* name) {
    List out;
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return out;
    for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || std::strcmp(entry->ifa_name, name) != 0) continue;
        char text[INET6_ADDRSTRLEN];
        const sockaddr* address = entry->ifa_addr;
        const void* bytes = nullptr;
        if (address->sa_family == AF_INET) bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
        if (address->sa_family == AF_INET6) bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
        if (bytes != nullptr) out.add(::inet_ntop(address->sa_family, bytes, text, sizeof text));
    }
    ::freeifaddrs(all);
    return out;
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
        const short flags = ask(entry->if_name, SIOCGIFFLAGS).ifr_flags;
        Object interface;
        interface.add("name", entry->if_name)
            .add("up", (flags & IFF_UP) != 0)
            .add("loopback", (flags & IFF_LOOPBACK) != 0)
            .add("mtu", ask(entry->if_name, SIOCGIFMTU).ifr_mtu)
            .add("addresses", addresses_of(entry->if_name));
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
