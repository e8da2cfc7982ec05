// Finding the payload inside the container, and becoming it.
#include "process/executable.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::string_view search_path(const std::vector<std::string>& env) {
    for (const std::string& entry : env) {
        if (entry.starts_with("PATH=")) return std::string_view(entry).substr(5);
    }
    return kDefaultPath;
}

// 0 if it can be executed, else the errno that execve would give.
int check_executable(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return errno;
    if (!S_ISREG(info.st_mode)) return EACCES;
    return ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// Engines look for these very words, in lower case.
Error exec_error(int code, const std::string& name) {
    const char* words = code == ENOENT ? "no such file or directory" : code == EACCES ? "permission denied" : nullptr;
    if (words == nullptr) return errno_error(code, concat("\"", name, "\""));
    return Error{code, concat("\"", name, "\": ", words), {}};
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
    result.push_back(nullptr);
    return result;
}

}  // namespace

Result<std::string> find_executable(const std::string& name, const std::vector<std::string>& env) {
    if (name.find('/') != std::string::npos) {
        const int problem = check_executable(name);
        if (problem != 0) return exec_error(problem, name);
        return name;
    }
    bool denied = false;
    for (const std::string_view directory : split(search_path(env), ':')) {
        const std::string candidate = concat(directory.empty() ? "." : directory, "/", name);
        const int problem = check_executable(candidate);
        if (problem == 0) return candidate;
        denied = denied || problem == EACCES;
    }
    if (denied) return exec_error(EACCES, name);
    return Error{ENOENT, concat("\"", name, "\": executable file not found in $PATH"), {}};
}

Error execute(const std::string& path, const std::vector<std::string>& args, const std::vector<std::string>& env) {
    const std::vector<char*> argv = pointers(args);
    const std::vector<char*> envp = pointers(env);
    ::execve(path.c_str(), argv.data(), envp.data());
    const int code = errno;
    Error error = exec_error(code, path);
    if (code == ENOENT)
        error.hint = "the file is there, so its interpreter or dynamic loader is missing from the root file system";
    if (code == ENOEXEC) error.hint = "the file is not a program for this machine, and has no #! line";
    return error;
}

}  // namespace pinfold
