// Ports of this machine that lead into a sandbox: as the caller writes them, as the state remembers them, and the
// sockets that listen there.
#pragma once

#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// Which ports are open, of a sandbox that has some: "127.0.0.1:8080:80,[::1]:8081:81".
inline constexpr const char* kPublishedAnnotation = "org.pinfold.published";

// "[ADDR:]HOST:INSIDE"
Result<PublishedPort> parse_publish(const std::string& text);
std::string publish_text(const PublishedPort& port);

std::string published_annotation(const std::vector<PublishedPort>& ports);
Result<std::vector<PublishedPort>> parse_published(const std::string& annotation);

// Bytes in each direction that the kernel holds for a connection, on each side, before its sender has to wait. It
// doubles that for its own use.
inline constexpr int kSocketBuffer = 64 << 10;

// A socket that listens, and the port that it has got where any was asked for.
struct Listener {
    UniqueFd socket;
    PublishedPort port;
};

// All that the job asks for, before anything of it is made.
Result<std::vector<Listener>> open_listeners(const SandboxJob& job);

}  // namespace pinfold
