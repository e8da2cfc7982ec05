// Reading files, cutting lines, quoting JSON.
#include "text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "json.hpp"

namespace probe {

std::string quote(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte >= 0x7f) {
            // Bytes beyond ASCII as Latin-1: the reader gets back every byte, whatever the encoding was.
            std::array<char, 8> escape{};
            std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(byte));
            out += escape.data();
        } else {
            out += c;
        }
    }
    return out + "\"";
}

std::optional<std::string> read_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    std::string text;
    std::array<char, 4096> buffer{};
    ssize_t count = 0;
    while ((count = ::read(fd, buffer.data(), buffer.size())) > 0)
        text.append(buffer.data(), static_cast<size_t>(count));
    ::close(fd);
    if (count < 0) return std::nullopt;
    return text;
}

std::optional<std::string> read_link(const std::string& path) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::readlink(path.c_str(), buffer.data(), buffer.size());
    if (count < 0) return std::nullopt;
    return std::string(buffer.data(), static_cast<size_t>(count));
}

std::vector<std::string> words(std::string_view text, char separator) {
    std::vector<std::string> out;
    size_t begin = 0;
    while (begin < text.size()) {
        const size_t end = std::min(text.find(separator, begin), text.size());
        if (end > begin) out.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return out;
}

std::string octal(unsigned mode) {
    std::array<char, 16> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%04o", mode & 07777);
    return buffer.data();
}

}  // namespace probe
