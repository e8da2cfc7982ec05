// The five capability sets.
#include "kernel/capabilities.hpp"

#include <linux/capability.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <memory>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr uint64_t bit(int capability) { return uint64_t{1} << capability; }

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
    // libcap knows it, this kernel does not
    if (::prctl(PR_CAPBSET_READ, value) < 0 && errno == EINVAL) return std::nullopt;
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

Result<uint64_t> own_permitted_capabilities() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[2]{};
    if (::syscall(SYS_capget, &header, data) != 0) return errno_error("capget");
    return uint64_t{data[0].permitted} | uint64_t{data[1].permitted} << 32;
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

}  // namespace pinfold
