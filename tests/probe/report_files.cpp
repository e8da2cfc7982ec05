// What the process can reach: open descriptors, mounts, /dev, terminals.
#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "describe.hpp"
#include "report.hpp"
#include "text.hpp"

namespace probe {

namespace {

std::vector<std::string> entries(const std::string& path) {
    std::vector<std::string> names;
    DIR* directory = ::opendir(path.c_str());
    if (directory == nullptr) return names;
    while (const dirent* entry = ::readdir(directory)) {
        const std::string name = entry->d_name;
        if (name != "." && name != "..") names.push_back(name);
    }
    ::closedir(directory);
    std::sort(names.begin(), names.end());
    return names;
}

// mountinfo writes blanks and the like as \040.
std::string unescape(const std::string& text) {
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 3 < text.size()) {
            out += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
            i += 3;
        } else {
            out += text[i];
        }
    }
    return out;
}

List list_of(const std::vector<std::string>& items) {
    List out;
    for (const std::string& item : items) out.add(item);
    return out;
}

// id parent major:minor root mountpoint options [tags...] - type source superoptions
Object mount_of(const std::string& line) {
    const auto fields = words(line);
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (fields.size() < 9 || fields.end() - dash < 4) return {};
    Object out;
    out.add("id", std::stoi(fields[0])).add("parent", std::stoi(fields[1])).add("device", fields[2]);
    out.add("root", unescape(fields[3]))
        .add("point", unescape(fields[4]))
        .add("options", list_of(words(fields[5], ',')));
    out.add("tags", list_of({fields.begin() + 6, dash}));
    out.add("type", dash[1]).add("source", unescape(dash[2])).add("super", list_of(words(dash[3], ',')));
    return out;
}

}  // namespace

Object describe(const std::string& path, const struct stat& info) {
    static constexpr struct {
        mode_t bits;
        const char* name;
    } kTypes[] = {{S_IFREG, "file"},  {S_IFDIR, "directory"}, {S_IFLNK, "link"},   {S_IFCHR, "char"},
                  {S_IFBLK, "block"}, {S_IFIFO, "fifo"},      {S_IFSOCK, "socket"}};
    Object out;
    for (const auto& type : kTypes) {
        if ((info.st_mode & S_IFMT) == type.bits) out.add("type", type.name);
    }
    out.add("mode", octal(info.st_mode)).add("uid", info.st_uid).add("gid", info.st_gid);
    out.add("major", major(info.st_rdev)).add("minor", minor(info.st_rdev)).add("size", info.st_size);
    if (const auto target = read_link(path)) out.add("target", *target);
    return out;
}

// Asked one by one: works without /proc, and opening a directory would add an entry of its own.
List open_files() {
    List out;
    for (int fd = 0; fd < 1024; ++fd) {
        if (::fcntl(fd, F_GETFD) < 0) continue;
        Object file;
        file.add("fd", fd);
        if (const auto target = read_link("/proc/self/fd/" + std::to_string(fd))) file.add("target", *target);
        out.add(file);
    }
    return out;
}

List mounts() {
    List out;
    for (const std::string& line : words(read_file("/proc/self/mountinfo").value_or(""), '\n')) out.add(mount_of(line));
    return out;
}

List devices() {
    List out;
    for (const std::string& name : entries("/dev")) {
        const std::string path = "/dev/" + name;
        struct stat info {};
        if (::lstat(path.c_str(), &info) != 0) continue;
        Object device = describe(path, info);
        out.add(device.add("path", path));
    }
    return out;
}

List terminals() {
    List out;
    for (int fd = 0; fd < 3; ++fd) {
        winsize size{};
        Object terminal;
        terminal.add("tty", ::isatty(fd) == 1).add("foreground", ::tcgetpgrp(fd) == ::getpgrp());
        if (::ioctl(fd, TIOCGWINSZ, &size) == 0) terminal.add("rows", size.ws_row).add("columns", size.ws_col);
        out.add(terminal);
    }
    return out;
}

}  // namespace probe
