// The default root of a sandbox. A list of what is shown: whatever is not named here does not exist inside.
#include "sandbox/host_root.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "sandbox/pasta.hpp"

namespace pinfold {

namespace {

// Links into /usr on every merged system, else directories.
constexpr const char* kTopDirectories[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

// Of /etc: what the loader, libc and language runtimes read. Nothing that may hold a password, a token or a name of
// this network; in particular none of the files with settings of package managers.
constexpr const char* kShownInEtc[] = {"alternatives", "ld.so.cache", "ssl/certs"};
constexpr const char* kJavaPrefix = "java-";
constexpr const char* kCopiedFromEtc[] = {"services", "protocols", "mime.types"};
constexpr size_t kMostCopied = size_t{4} << 20;
constexpr const char* kEmptyDirectories[] = {"dev", "proc",    "tmp", "usr",    "workspace",
                                             "etc", "etc/ssl", "var", "var/tmp"};

bool exists(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
}

void add_top_directories(HostRoot& root) {
    for (const char* name : kTopDirectories) {
        const std::string path = concat('/', name);
        const std::string target = link_target(path);
        if (!target.empty()) root.skeleton.links.push_back({name, target});
        else if (exists(path)) root.mounts.push_back(shown(path));
    }
}

void add_java(HostRoot& root) {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/etc"), ::closedir);
    while (const dirent* entry = directory ? ::readdir(directory.get()) : nullptr) {
        const std::string_view name = entry->d_name;
        if (name.starts_with(kJavaPrefix)) root.mounts.push_back(shown(concat("/etc/", name)));
    }
}

void add_etc(HostRoot& root) {
    for (const char* name : kShownInEtc) {
        const std::string path = concat("/etc/", name);
        if (exists(path)) root.mounts.push_back(shown(path));
    }
    add_java(root);
    for (const char* name : kCopiedFromEtc) {
        if (auto text = read_regular(concat("/etc/", name), kMostCopied))
            root.skeleton.files.push_back({concat("etc/", name), *text});
    }
    for (const char* name : {"localtime", "os-release"}) {
        const std::string target = link_target(concat("/etc/", name));
        if (!target.empty()) root.skeleton.links.push_back({concat("etc/", name), target});
    }
}

std::string accounts(const User& user) {
    std::string lines = "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n";
    if (user.uid != 0) lines += concat("sandbox:x:", user.uid, ':', user.gid, ":sandbox:/workspace:/bin/sh\n");
    return lines;
}

std::string groups(const User& user) {
    std::string lines = "root:x:0:\nnogroup:x:65534:\n";
    if (user.gid != 0) lines += concat("sandbox:x:", user.gid, ":\n");
    return lines;
}

// A server on this machine's loopback is not the sandbox's, so pasta is asked in its place.
std::string name_servers(const std::string& of_host, Network network) {
    std::string lines;
    if (network == Network::pasta && is_for_this_machine_only(of_host))
        lines = concat("nameserver ", kPastaNameServer, '\n');
    for (const std::string_view line : split(of_host, '\n')) {
        if (line.empty() || (is_on_loopback(line) && network == Network::pasta)) continue;
        lines += concat(line, '\n');
    }
    return lines;
}

}  // namespace

// Recursively: in a user namespace mounts below the source cannot be left out, and they are to be read-only too.
Mount shown(const std::string& path) {
    return {path, "bind", path, {"rbind", "rprivate", "rro", "rnosuid", "rnodev"}, {}, {}};
}

void add_names(HostRoot& root, const User& user, Network network) {
    std::vector<Skeleton::File>& files = root.skeleton.files;
    files.push_back({"etc/passwd", accounts(user)});
    files.push_back({"etc/group", groups(user)});
    files.push_back({"etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"});
    files.push_back({"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"});
    if (network == Network::none) return;
    const Result<std::string> servers = read_regular("/etc/resolv.conf", kMostCopied);
    files.push_back({"etc/resolv.conf", name_servers(servers ? *servers : "", network)});
}

HostRoot plan_host_root(const User& user, Network network) {
    HostRoot root;
    root.skeleton.directories.assign(std::begin(kEmptyDirectories), std::end(kEmptyDirectories));
    root.mounts.push_back(shown("/usr"));
    add_top_directories(root);
    add_etc(root);
    add_names(root, user, network);
    return root;
}

}  // namespace pinfold
