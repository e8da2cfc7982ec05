// The five capability sets.
#include "kernel/capabilities.hpp"

#include <linux/capability.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <memory>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr uint64_t bit(int capability) { return uint64_t{1} << capability; }

struct ThreadCapabilities {
    uint64_t effective = 0;
    uint64_t permitted = 0;
    uint64_t inheritable = 0;
};

Result<ThreadCapabilities> capabilities_of(pid_t pid) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, pid};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) != 0) return errno_error("capget");
    const auto both = [](uint32_t low, uint32_t high) { return uint64_t{low} | uint64_t{high} << 32; };
    return ThreadCapabilities{both(data[0].effective, data[1].effective), both(data[0].permitted, data[1].permitted),
                              both(data[0].inheritable, data[1].inheritable)};
}

Result<void> set_thread_capabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    for (int word = 0; word < 2; ++word) {
        data[word].effective = static_cast<uint32_t>(effective >> (32 * word));
        data[word].permitted = static_cast<uint32_t>(permitted >> (32 * word));
        data[word].inheritable = static_cast<uint32_t>(inheritable >> (32 * word));
    }
    if (::syscall(SYS_capset, &header, data) != 0) return errno_error("capset");
    return {};
}

}  // namespace

std::optional<uint64_t> capability_bit(const std::string& name) {
    cap_value_t value = -1;
    if (::cap_from_name(name.c_str(), &value) != 0 || value < 0 || value > 63) return std::nullopt;
    if (value >= ::cap_max_bits()) return std::nullopt;  // libcap knows it, this kernel does not
    return bit(value);
}

std::vector<std::string> capability_names() {
    std::vector<std::string> names;
    for (cap_value_t value = 0;; ++value) {
        const std::unique_ptr<char, int (*)(void*)> name(::cap_to_name(value), ::cap_free);
        std::string upper = name ? name.get() : "";
        if (!upper.starts_with("cap_")) return names;  // past the last one there are numbers
        for (char& c : upper) c = static_cast<char>(std::toupper(c));
        names.push_back(std::move(upper));
    }
}

Result<uint64_t> own_permitted_capabilities() { return permitted_capabilities(0); }

Result<uint64_t> permitted_capabilities(pid_t pid) { return TRY(capabilities_of(pid)).permitted; }

Result<uint64_t> bounding_capabilities(pid_t pid) {
    constexpr std::string_view kKey = "\nCapBnd:\t";
    const std::string path = concat("/proc/", pid, "/status");
    const std::string status = TRY(read_file(path));
    const size_t found = status.find(kKey);
    const char* const digits = status.data() + (found == status.npos ? status.size() : found + kKey.size());
    uint64_t mask = 0;
    if (std::from_chars(digits, status.data() + status.size(), mask, 16).ptr == digits)
        return plain_error(concat(path, " tells no bounding set"));
    return mask;
}

Result<void> drop_capabilities(uint64_t dropped) {
    const ThreadCapabilities own = TRY(capabilities_of(0));
    return set_thread_capabilities(own.effective & ~dropped, own.permitted & ~dropped, own.inheritable & ~dropped);
}

Result<void> drop_bounding_set(uint64_t keep) {
    for (int capability = 0; capability < 64; ++capability) {
        if (keep & bit(capability)) continue;
        if (::prctl(PR_CAPBSET_DROP, capability) == 0) continue;
        if (errno == EINVAL) break;  // one past the kernel's last
        return errno_error(concat("drop capability ", capability, " from the bounding set"));
    }
    return {};
}

Result<void> raise_permitted_capabilities() {
    const uint64_t permitted = TRY(own_permitted_capabilities());
    return set_thread_capabilities(permitted, permitted, 0);
}

Result<void> apply_capabilities(const CapabilitySets& sets) {
    // Inheritable as asked, and nothing kept by accident (CVE-2022-29162): capset replaces all three.
    TRY(set_thread_capabilities(sets.effective, sets.permitted, sets.inheritable));
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
        return errno_error("clear ambient capabilities");
    for (int capability = 0; capability < 64; ++capability) {
        if (!(sets.ambient & bit(capability))) continue;
        if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0) {
            return errno_error(concat("raise ambient capability ", capability));
        }
    }
    return {};
}

SetAsideCapabilities::SetAsideCapabilities() {
    const Result<ThreadCapabilities> own = capabilities_of(0);
    if (!own) return;
    effective_ = own->effective;
    permitted_ = own->permitted;
    inheritable_ = own->inheritable;
    done_ = set_thread_capabilities(0, permitted_, inheritable_).has_value();
}

// What is permitted can be put into effect: this cannot fail where the first call did not.
SetAsideCapabilities::~SetAsideCapabilities() {
    if (done_) (void)set_thread_capabilities(effective_, permitted_, inheritable_);
}

}  // namespace pinfold
