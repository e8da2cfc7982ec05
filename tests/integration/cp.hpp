// For tests of cp: the verb, and what a file on the host's side of a container's root looks like afterwards.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "harness.hpp"

namespace pinfold::integration {

inline std::string inside(const Bundle& bundle, const std::string& path) { return bundle.id() + ":" + path; }

inline Ended cp(const Bundle& bundle, std::vector<std::string> words, const SpawnOptions& spawn = {}) {
    words.insert(words.begin(), "cp");
    return run_program(bundle.verb(words), spawn);
}

inline void check_copied(const Ended& ended) { CHECK_MESSAGE(ended.status == 0, ended.err); }

inline struct stat look_at(const fs::path& path) {
    struct stat info {};
    CHECK_MESSAGE(::lstat(path.c_str(), &info) == 0, path.string());
    return info;
}

inline unsigned mode_of(const fs::path& path) { return look_at(path).st_mode & 07777; }

// A container whose ids from 0 on are the host's from 100000 on, and who owns /data.
inline void map_ids(Bundle& bundle) {
    bundle.add_namespace("user");
    bundle.config["linux"]["uidMappings"] = {{{"containerID", 0}, {"hostID", 100000}, {"size", 65536}}};
    bundle.config["linux"]["gidMappings"] = bundle.config["linux"]["uidMappings"];
    CHECK(::lchown((bundle.rootfs() / "data").c_str(), 100000, 100000) == 0);
}

}  // namespace pinfold::integration
