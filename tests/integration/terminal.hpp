// A pseudo-terminal as a test's own end of a conversation.
#pragma once

#include <termios.h>

#include <filesystem>
#include <string>

#include "pinfold/unique_fd.hpp"

namespace pinfold::integration {

class Terminal {
public:
    Terminal(unsigned short rows, unsigned short columns);
    explicit Terminal(UniqueFd master) : master_(std::move(master)) {}

    int slave() const { return slave_.get(); }
    termios settings() const;
    void resize(unsigned short rows, unsigned short columns) const;
    void type(const std::string& text) const;

    // The next line without its line end; fails the test when none comes.
    std::string read_line();
    // Discards lines until this one has come.
    void await_line(const std::string& wanted);

private:
    UniqueFd master_;
    UniqueFd slave_;
    std::string unread_;
};

// An engine's side of --console-socket, --pidfd-socket and seccomp's listenerPath: listens, then receives one
// descriptor for each connection.
class DescriptorSocket {
public:
    explicit DescriptorSocket(const std::filesystem::path& path);

    const std::filesystem::path& path() const { return path_; }
    // With the text that came along, where that is wanted.
    UniqueFd receive(std::string* text = nullptr) const;

private:
    std::filesystem::path path_;
    UniqueFd listener_;
};

}  // namespace pinfold::integration
