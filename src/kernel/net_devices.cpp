// Network devices of the host that become a container's.
#include "kernel/net_devices.hpp"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>

#include <array>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

struct Address {
    ifaddrmsg header{};
    std::vector<std::pair<uint16_t, std::string>> attributes;
};

struct Device {
    int index = 0;
    unsigned flags = 0;
    std::vector<Address> addresses;
};

// A C string, as the kernel has it in attributes.
std::string_view with_end(const std::string& text) { return {text.c_str(), text.size() + 1}; }

ifinfomsg link_header(int index) {
    ifinfomsg header{};
    header.ifi_index = index;
    return header;
}

Result<Device> find_link(const NetlinkSocket& socket, const std::string& name) {
    Device device;
    NetlinkRequest request(RTM_GETLINK, NLM_F_ACK, link_header(0));
    TRY(socket.ask(request.add(IFLA_IFNAME, with_end(name)), [&](const nlmsghdr& message) {
        const auto& header = body_of<ifinfomsg>(message);
        device.index = header.ifi_index;
        device.flags = header.ifi_flags;
    }));
    return device;
}

// Those that somebody gave it, for the whole world; what the kernel made itself it makes anew.
bool is_to_be_kept(const ifaddrmsg& header) {
    return header.ifa_scope == RT_SCOPE_UNIVERSE && (header.ifa_flags & IFA_F_PERMANENT) != 0;
}

Result<std::vector<Address>> find_addresses(const NetlinkSocket& socket, int index) {
    std::vector<Address> addresses;
    TRY(socket.ask(NetlinkRequest(RTM_GETADDR, NLM_F_DUMP, ifaddrmsg{}), [&](const nlmsghdr& message) {
        const auto& header = body_of<ifaddrmsg>(message);
        if (static_cast<int>(header.ifa_index) != index || !is_to_be_kept(header)) return;
        Address address{header, {}};
        for (const uint16_t type : std::to_array<uint16_t>({IFA_LOCAL, IFA_ADDRESS, IFA_BROADCAST})) {
            const std::string_view bytes = find_attribute(message, sizeof header, type);
            if (!bytes.empty()) address.attributes.emplace_back(type, bytes);
        }
        addresses.push_back(std::move(address));
    }));
    return addresses;
}

Result<Device> describe_device(const NetlinkSocket& socket, const std::string& name) {
    Result<Device> device = find_link(socket, name);
    if (!device && device.error().code == ENODEV) {
        return plain_error(concat("the host has no network device ", quoted(name)));
    }
    if (!device) return device;
    if (device->flags & IFF_LOOPBACK) return plain_error("a loopback device cannot be moved");
    device->addresses = TRY(find_addresses(socket, device->index));
    return device;
}

// The kernel looks at the new name only after the move, and then leaves the device over there under its old one.
Result<void> refuse_taken_name(const NetlinkSocket& socket, const std::string& name) {
    const Result<Device> other = find_link(socket, name);
    if (other) return plain_error(concat("a device ", quoted(name), " is already there"));
    return other.error().code == ENODEV ? Result<void>() : other.error();
}

Result<void> move_link(const NetlinkSocket& from, int index, int to, const std::string& name) {
    NetlinkRequest request(RTM_NEWLINK, NLM_F_ACK, link_header(index));
    request.add(IFLA_NET_NS_FD, static_cast<uint32_t>(to)).add(IFLA_IFNAME, with_end(name));
    return from.ask(std::move(request));
}

Result<void> add_address(const NetlinkSocket& socket, int index, const Address& address) {
    ifaddrmsg header = address.header;
    header.ifa_index = static_cast<unsigned>(index);
    NetlinkRequest request(RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, header);
    for (const auto& [type, bytes] : address.attributes) request.add(type, bytes);
    return socket.ask(std::move(request));
}

Result<void> set_up(const NetlinkSocket& socket, int index, bool up) {
    ifinfomsg header = link_header(index);
    header.ifi_flags = up ? IFF_UP : 0;
    header.ifi_change = IFF_UP;
    return socket.ask(NetlinkRequest(RTM_NEWLINK, NLM_F_ACK, header));
}

// A device loses its addresses and goes down when it is moved.
Result<void> restore(const NetlinkSocket& socket, const std::string& name, const std::vector<Address>& addresses,
                     bool up) {
    const int index = TRY(find_link(socket, name)).index;
    for (const Address& address : addresses) TRY_IN("give it its addresses", add_address(socket, index, address));
    return set_up(socket, index, up);
}

Result<UniqueFd> open_net_namespace(const std::string& process) {
    return open_at(AT_FDCWD, concat("/proc/", process, "/ns/net"), O_RDONLY);
}

Result<void> enter(const UniqueFd& ns) {
    if (::setns(ns.get(), CLONE_NEWNET) != 0) return errno_error("enter a network namespace");
    return {};
}

}  // namespace

Result<void> MovedDevices::move_one(const NetDeviceMove& device) {
    const Device found = TRY(describe_device(host_->socket, device.host_name));
    TRY(refuse_taken_name(container_->socket, device.name));
    TRY(move_link(host_->socket, found.index, container_->ns.get(), device.name));
    moved_.push_back({device, (found.flags & IFF_UP) != 0});
    return restore(container_->socket, device.name, found.addresses, true);
}

Result<void> MovedDevices::give_back(const Moved& device) const {
    const Device found = TRY(describe_device(container_->socket, device.names.name));
    TRY(move_link(container_->socket, found.index, host_->ns.get(), device.names.host_name));
    return restore(host_->socket, device.names.host_name, found.addresses, device.was_up);
}

Result<MovedDevices> MovedDevices::move(const std::vector<NetDeviceMove>& devices, pid_t process) {
    MovedDevices moved;
    UniqueFd own = TRY(open_net_namespace("self"));
    UniqueFd other = TRY(open_net_namespace(std::to_string(process)));
    moved.host_.emplace(Side{std::move(own), TRY(NetlinkSocket::open())});
    TRY(enter(other));
    Result<NetlinkSocket> there = NetlinkSocket::open();
    TRY(enter(moved.host_->ns));
    moved.container_.emplace(Side{std::move(other), TRY(std::move(there))});
    for (const NetDeviceMove& device : devices) {
        TRY_IN(concat("linux.netDevices.", device.host_name), moved.move_one(device));
    }
    return moved;
}

MovedDevices::~MovedDevices() {
    for (; !moved_.empty(); moved_.pop_back()) {
        const Result<void> back = give_back(moved_.back());
        if (back) continue;
        log_warning(
            concat("network device ", moved_.back().names.host_name, " was not given back: ", back.error().message));
    }
}

}  // namespace pinfold
