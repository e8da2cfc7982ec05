// Ports of this machine that lead into a sandbox.
#include "sandbox/publish.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/address.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr size_t kMostPorts = 64;

Error not_a_port(const std::string& text) {
    return plain_error(concat("--publish ", quoted(text), ": expected [ADDR:]HOST:INSIDE"))
        .with_hint("ports are numbers, and HOST may be 0 for any that is free: 127.0.0.1:8080:80, [::1]:0:80");
}

// What each accepted connection has from the listener. The buffers have bounds, so that those who do not read cost
// little of the kernel's memory, and a peer whose machine is gone is found out.
constexpr struct {
    int level;
    int name;
    int value;
} kOptions[] = {{SOL_SOCKET, SO_REUSEADDR, 1},          {SOL_SOCKET, SO_RCVBUF, kSocketBuffer},
                {SOL_SOCKET, SO_SNDBUF, kSocketBuffer}, {SOL_SOCKET, SO_KEEPALIVE, 1},
                {IPPROTO_TCP, TCP_KEEPIDLE, 60},        {IPPROTO_TCP, TCP_KEEPINTVL, 15},
                {IPPROTO_TCP, TCP_KEEPCNT, 4},          {IPPROTO_TCP, TCP_NODELAY, 1}};

Error explain_bind(int code, const PublishedPort& port) {
    const std::string place = concat("port ", port.host, " of ", port.address);
    if (code == EADDRINUSE && port.host == 0) return plain_error(concat("no port of ", port.address, " is free"));
    if (code == EADDRINUSE) return plain_error(concat(place, " is in use"));
    if (code == EADDRNOTAVAIL) return plain_error(concat("this machine has no address ", port.address));
    if (code == EACCES)
        return plain_error(concat(place, " takes root"))
            .with_hint("ports from net.ipv4.ip_unprivileged_port_start on, mostly 1024, are for everybody");
    return errno_error(code, concat("listen on ", place));
}

Result<uint16_t> port_of(int socket) {
    SocketAddress bound;
    bound.size = sizeof bound.name;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound.name), &bound.size) != 0)
        return errno_error("getsockname");
    if (bound.name.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(bound.name).sin_port);
    return ntohs(reinterpret_cast<const sockaddr_in6&>(bound.name).sin6_port);
}

Result<Listener> open_listener(const PublishedPort& wanted) {
    constexpr int kWaiting = 128;  // to be accepted
    const std::optional<SocketAddress> address = socket_address(wanted.address, wanted.host);
    if (!address) return plain_error(concat(quoted(wanted.address), " is no address")).with_hint("as in 127.0.0.1");
    if (wanted.inside == 0) return plain_error("0 is no port inside");
    Listener listener{UniqueFd(::socket(address->name.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
                      wanted};
    const int socket = listener.socket.get();
    if (socket < 0) return errno_error("socket");
    for (const auto& option : kOptions) {
        if (::setsockopt(socket, option.level, option.name, &option.value, sizeof option.value) != 0)
            return errno_error("setsockopt");
    }
    // Or "::" would be every address of IPv4, too, which a policy may not have allowed.
    const int on = 1;
    if (address->name.ss_family == AF_INET6 && ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)
        return errno_error("setsockopt");
    if (::bind(socket, address->get(), address->size) != 0 || ::listen(socket, kWaiting) != 0)
        return explain_bind(errno, wanted);
    listener.port.host = TRY(port_of(socket));
    return listener;
}

}  // namespace

Result<PublishedPort> parse_publish(const std::string& text) {
    PublishedPort port;
    std::string_view ports = text;
    if (std::optional<AddressAnd> split = split_address(text)) {
        if (!split->rest) return not_a_port(text);
        port.address = std::move(split->address);
        ports = *split->rest;
    }
    const std::vector<std::string_view> numbers = pinfold::split(ports, ':');
    const auto host = parse_number<uint16_t>(numbers[0]);
    const auto inside = parse_number<uint16_t>(numbers.back());
    if (numbers.size() != 2 || !host || !inside || *inside == 0) return not_a_port(text);
    port.host = *host;
    port.inside = *inside;
    return port;
}

std::string publish_text(const PublishedPort& port) {
    return concat(address_text(port.address, port.host), ':', port.inside);
}

std::string published_annotation(const std::vector<PublishedPort>& ports) {
    std::vector<std::string> words;
    for (const PublishedPort& port : ports) words.push_back(publish_text(port));
    return join(words, ",");
}

Result<std::vector<PublishedPort>> parse_published(const std::string& annotation) {
    std::vector<PublishedPort> ports;
    for (const std::string_view word : split(annotation, ',')) ports.push_back(TRY(parse_publish(std::string(word))));
    return ports;
}

Result<std::vector<Listener>> open_listeners(const SandboxJob& job) {
    std::vector<Listener> listeners;
    if (job.publish.empty()) return listeners;
    if (job.network == Network::host)
        return plain_error("--publish: with --network host there is nothing to lead into")
            .with_hint("leave it out: who may listen there, by --tcp-bind, is reached as any program of this machine");
    if (job.publish.size() > kMostPorts)
        return plain_error(concat("--publish: ", job.publish.size(), " ports are more than ", kMostPorts));
    for (const PublishedPort& wanted : job.publish) listeners.push_back(TRY_IN("--publish", open_listener(wanted)));
    return listeners;
}

}  // namespace pinfold
