// Ways out: sockets, the host's services, the caller's terminal.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "escape.hpp"

namespace probe {

namespace {

struct Kind {
    const char* name;
    int family;
    int type;
    int protocol = 0;
};
constexpr Kind kKinds[] = {
    {"raw packets of IPv4", AF_INET, SOCK_RAW, IPPROTO_ICMP},
    {"raw packets of IPv6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6},
    {"packets of every interface", AF_PACKET, SOCK_RAW},
    {"packets without their headers", AF_PACKET, SOCK_DGRAM},
    {"the hypervisor's sockets", AF_VSOCK, SOCK_STREAM},
    {"the kernel's ciphers", AF_ALG, SOCK_SEQPACKET},
    {"the kernel's keys of IPsec", AF_KEY, SOCK_RAW, 2},
    {"sockets of XDP", AF_XDP, SOCK_RAW},
    {"sockets of Bluetooth", AF_BLUETOOTH, SOCK_RAW, 1},
    {"sockets of CAN", AF_CAN, SOCK_RAW, 1},
    {"sockets of TIPC", AF_TIPC, SOCK_SEQPACKET},
    {"netlink of audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT},
    {"netlink of the packet filter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER},
    {"netlink of device events", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT},
};

const std::vector<int> kNoSuchSocket = {EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT};
const std::vector<int> kNobodyThere = {ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ENOENT, EAFNOSUPPORT};

long open_socket(const Kind& kind) {
    const int socket = ::socket(kind.family, kind.type | SOCK_CLOEXEC, kind.protocol);
    if (socket >= 0) ::close(socket);
    return socket;
}

long connect_to(int family, const void* address, size_t size) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return -1;
    const long result = ::connect(socket, static_cast<const sockaddr*>(address), socklen_t(size));
    const int error = errno;
    ::close(socket);
    errno = error;
    return result;
}

long host_port() {
    const char* port = std::getenv("PORT");
    if (port == nullptr) return kAbsent;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    address.sin_port = ::htons(static_cast<uint16_t>(std::stoi(port)));
    return connect_to(AF_INET, &address, sizeof address);
}

// A first byte of zero makes it a name without a file.
long unix_socket(const char* variable, const std::string& prefix) {
    const char* value = std::getenv(variable);
    if (value == nullptr) return kAbsent;
    const std::string name = prefix + value;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), std::min(name.size(), sizeof address.sun_path));
    return connect_to(AF_UNIX, &address, offsetof(sockaddr_un, sun_path) + name.size());
}

// The loopback interface is set to what it is: the kernel's answer says whether more could have been done.
long change_interface() {
    struct {
        nlmsghdr header{};
        ifinfomsg info{};
    } request;
    request.header.nlmsg_len = sizeof request;
    request.header.nlmsg_type = RTM_SETLINK;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    request.info.ifi_index = 1;
    const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (socket < 0 || ::send(socket, &request, sizeof request, 0) < 0) return -1;
    struct {
        nlmsghdr header{};
        nlmsgerr error{};
        std::array<char, 256> rest{};
    } answer;
    const ssize_t size = ::recv(socket, &answer, sizeof answer, 0);
    ::close(socket);
    if (size < 0) return -1;
    errno = -answer.error.error;
    return errno == 0 ? 0 : -1;
}

long type_for_caller() {
    char letter = 'x';
    return ::ioctl(STDIN_FILENO, TIOCSTI, &letter);
}

long paste_for_caller() {
    char paste_selection = 3;
    return ::ioctl(STDIN_FILENO, TIOCLINUX, &paste_selection);
}

}  // namespace

Attempts socket_attempts() {
    Attempts out;
    for (const Kind& kind : kKinds) out.push_back({kind.name, [&] { return open_socket(kind); }, kNoSuchSocket});
    out.push_back({"a change of an interface", change_interface});
    out.push_back({"the host's port", host_port, kNobodyThere});
    out.push_back({"the host's abstract socket", [] { return unix_socket("ABSTRACT", {'\0'}); }, kNobodyThere});
    out.push_back({"the host's socket in a file", [] { return unix_socket("SOCKET", ""); }, kNobodyThere});
    return out;
}

Attempts terminal_attempts() {
    return {
        // EIO: a kernel that has done with it for those without rights. ENOTTY: what is there is no terminal.
        {"TIOCSTI to the caller's terminal", type_for_caller, {EIO, ENOTTY}},
        {"TIOCLINUX to the caller's terminal", paste_for_caller, {ENOTTY, EINVAL}},
        {"the caller's terminal, taken",
         [] {
             return in_child([] {
                 ::setsid();
                 return ::ioctl(STDIN_FILENO, TIOCSCTTY, 1);
             });
         },
         {ENOTTY}},
        {"the caller's terminal as /dev/tty", [] { return ::open("/dev/tty", O_RDWR | O_CLOEXEC); }, {ENXIO, ENOENT}},
    };
}

}  // namespace probe
