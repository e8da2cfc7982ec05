// Trying things on files: each answers ok or the name of the error.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "commands.hpp"
#include "describe.hpp"

namespace probe {

namespace {

Object write_with_flags(const std::string& path, const std::string& text, int flags) {
    const int fd = ::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0) return failure();
    const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const Object answer = success_if(written);
    ::close(fd);
    return answer;
}

}  // namespace

Object read_command(const Arguments& arguments) {
    const auto text = read_file(arguments[0]);
    return text ? success().add("text", *text) : failure();
}

Object label_command(const Arguments& arguments) {
    char label[256] = {};
    const ssize_t length = ::getxattr(arguments[0].c_str(), "security.selinux", label, sizeof label - 1);
    return length < 0 ? failure() : success().add("text", std::string(label));
}

Object write_command(const Arguments& arguments) { return write_with_flags(arguments[0], arguments[1], 0); }

Object create_command(const Arguments& arguments) {
    return write_with_flags(arguments[0], arguments[1], O_CREAT | O_EXCL);
}

Object mkdir_command(const Arguments& arguments) { return success_if(::mkdir(arguments[0].c_str(), 0755) == 0); }

Object stat_command(const Arguments& arguments) {
    struct stat info {};
    if (::lstat(arguments[0].c_str(), &info) != 0) return failure();
    return describe(arguments[0], info).add("ok", true);
}

Object open_command(const Arguments& arguments) {
    const int flags = arguments[1] == "ro" ? O_RDONLY : arguments[1] == "wo" ? O_WRONLY : O_RDWR;
    const int fd = ::open(arguments[0].c_str(), flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return failure();
    ::close(fd);
    return success();
}

Object list_command(const Arguments& arguments) {
    DIR* directory = ::opendir(arguments[0].c_str());
    if (directory == nullptr) return failure();
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(directory)) {
        if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    }
    ::closedir(directory);
    std::sort(names.begin(), names.end());
    List list;
    for (const std::string& name : names) list.add(name);
    return success().add("names", list);
}

Object mknod_command(const Arguments& arguments) {
    const mode_t type = arguments[1] == "c" ? S_IFCHR : arguments[1] == "b" ? S_IFBLK : S_IFIFO;
    const auto device =
        makedev(static_cast<unsigned>(std::stoul(arguments[2])), static_cast<unsigned>(std::stoul(arguments[3])));
    return success_if(::mknod(arguments[0].c_str(), type | 0600, device) == 0);
}

Object statfs_command(const Arguments& arguments) {
    struct statfs info {};
    if (::statfs(arguments[0].c_str(), &info) != 0) return failure();
    Object out = success();
    out.add("type", static_cast<unsigned long>(info.f_type));
    return out.add("bytes", static_cast<unsigned long>(info.f_blocks) * static_cast<unsigned long>(info.f_bsize));
}

Object mount_command(const Arguments& arguments) {
    return success_if(::mount(arguments[0].c_str(), arguments[1].c_str(), arguments[2].c_str(), 0, nullptr) == 0);
}

Object exec_command(const Arguments& arguments) {
    const pid_t child = ::fork();
    if (child < 0) return failure();
    if (child == 0) {
        std::vector<std::string> copy = arguments;
        std::vector<char*> argv;
        for (std::string& argument : copy) argv.push_back(argument.data());
        argv.push_back(nullptr);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return success().add("code", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace probe
