// The host's /proc, held open from before pivot_root: writes to it cannot be redirected by anything that the
// container mounts or links (CVE-2019-16884, CVE-2025-52881).
#pragma once

#include <span>
#include <string>
#include <utility>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

class HostProc {
public:
    static Result<HostProc> open();

    // For entries such as "sys/net/ipv4/ip_forward": no symlink, no other mount on the way.
    Result<void> write(const std::string& path, std::string_view text) const;

private:
    explicit HostProc(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

struct SysctlSetting {
    std::string key;   // as in the config, for messages
    std::string path;  // "sys/net/ipv4/ip_forward"
    std::string value;
};

// Namespaced settings follow the namespaces of the writer, whichever /proc it writes to.
Result<void> apply_sysctls(std::span<const SysctlSetting> settings);

}  // namespace pinfold
