// Requests to the kernel's network configuration (rtnetlink).
#pragma once

#include <linux/netlink.h>

#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// One request: a header of the kernel's, then attributes.
class NetlinkRequest {
public:
    template <class Header>
    NetlinkRequest(uint16_t type, uint16_t flags, const Header& header) {
        append(nlmsghdr{0, type, static_cast<uint16_t>(NLM_F_REQUEST | flags), 1, 0});
        append(header);
    }

    NetlinkRequest& add(uint16_t attribute, std::string_view bytes);
    NetlinkRequest& add(uint16_t attribute, uint32_t number);
    // Complete, with its length.
    std::string_view bytes();

private:
    template <class Part>
    void append(const Part& part) {
        const size_t at = bytes_.size();
        bytes_.resize(at + NLMSG_ALIGN(sizeof part));
        std::memcpy(bytes_.data() + at, &part, sizeof part);
    }

    std::vector<char> bytes_;
};

class NetlinkSocket {
public:
    // Speaks of the network namespace that the caller is in now, wherever it goes later.
    static Result<NetlinkSocket> open();

    // Until the kernel has said that this was all, or an error.
    using Visitor = std::function<void(const nlmsghdr&)>;
    Result<void> ask(NetlinkRequest request, const Visitor& on_answer = nullptr) const;

private:
    explicit NetlinkSocket(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

// What follows the message's own header.
template <class Body>
const Body& body_of(const nlmsghdr& message) {
    return *reinterpret_cast<const Body*>(reinterpret_cast<const char*>(&message) + NLMSG_HDRLEN);
}

// The bytes of an attribute that follows a header of that size; empty where there is none of that type.
std::string_view find_attribute(const nlmsghdr& message, size_t header, uint16_t type);

}  // namespace pinfold
