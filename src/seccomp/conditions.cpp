// When a rule of a profile holds: all that it includes has to be so, and nothing that it excludes.
#include "seccomp/conditions.hpp"

#include <seccomp.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/strings.hpp"
#include "kernel/capabilities.hpp"

namespace pinfold {

namespace {

struct Arch {
    std::string_view name;
    uint32_t token;  // 0: not of this library's
};

// The second name of some is Go's own, which Docker translates.
constexpr auto kArches = std::to_array<Arch>({{"amd64", SCMP_ARCH_X86_64},
                                              {"x86", SCMP_ARCH_X86},
                                              {"386", SCMP_ARCH_X86},
                                              {"x32", SCMP_ARCH_X32},
                                              {"arm64", SCMP_ARCH_AARCH64},
                                              {"arm", SCMP_ARCH_ARM},
                                              {"ppc64le", SCMP_ARCH_PPC64LE},
                                              {"ppc64", SCMP_ARCH_PPC64},
                                              {"ppc", SCMP_ARCH_PPC},
                                              {"s390x", SCMP_ARCH_S390X},
                                              {"s390", SCMP_ARCH_S390},
                                              {"riscv64", SCMP_ARCH_RISCV64},
                                              {"mips", SCMP_ARCH_MIPS},
                                              {"mips64", SCMP_ARCH_MIPS64},
                                              {"mips64n32", SCMP_ARCH_MIPS64N32},
                                              {"mips64p32", SCMP_ARCH_MIPS64N32},
                                              {"mipsel", SCMP_ARCH_MIPSEL},
                                              {"mipsle", SCMP_ARCH_MIPSEL},
                                              {"mipsel64", SCMP_ARCH_MIPSEL64},
                                              {"mips64le", SCMP_ARCH_MIPSEL64},
                                              {"mipsel64n32", SCMP_ARCH_MIPSEL64N32},
                                              {"mips64len32", SCMP_ARCH_MIPSEL64N32},
                                              {"mips64p32le", SCMP_ARCH_MIPSEL64N32},
                                              {"parisc", SCMP_ARCH_PARISC},
                                              {"parisc64", SCMP_ARCH_PARISC64},
                                              {"loong64", 0}});

using Version = std::pair<unsigned, unsigned>;

std::optional<Version> parse_version(std::string_view text) {
    const size_t dot = text.find('.');
    if (dot == text.npos) return std::nullopt;
    const std::optional<unsigned> first = parse_number<unsigned>(text.substr(0, dot));
    const std::optional<unsigned> second = parse_number<unsigned>(text.substr(dot + 1));
    if (!first || !second) return std::nullopt;
    return Version(*first, *second);
}

// Of "6.1.0-18-amd64" the first two numbers.
Version running_kernel() {
    utsname names{};
    if (::uname(&names) != 0) return {};
    const std::string_view release = names.release;
    const size_t second = release.find_first_not_of("0123456789", release.find('.') + 1);
    return parse_version(release.substr(0, second)).value_or(Version());
}

bool is_native(std::string_view arch) {
    const auto found = std::ranges::find(kArches, arch, &Arch::name);
    return found != kArches.end() && found->token == seccomp_arch_native();
}

bool has_native(const std::vector<std::string>& arches) { return std::ranges::any_of(arches, is_native); }

bool kernel_is(const std::string& min_kernel) {
    return running_kernel() >= parse_version(min_kernel).value_or(Version(~0U, ~0U));
}

}  // namespace

void read(const Reader& object, RuleConditions& conditions) {
    object.optional("caps", conditions.caps);
    object.optional("arches", conditions.arches);
    object.optional("minKernel", conditions.min_kernel);
}

void validate_conditions(const RuleConditions& conditions, std::string_view at, Problems& problems) {
    const std::vector<std::string> names = conditions.caps.empty() ? conditions.caps : capability_names();
    for (size_t i = 0; i < conditions.caps.size(); ++i) {
        if (std::ranges::find(names, conditions.caps[i]) != names.end()) continue;
        problems.add(element_path(member_path(at, "caps"), i),
                     expected_but_found(conditions.caps[i], "a capability such as CAP_SYS_ADMIN"));
    }
    std::array<std::string_view, kArches.size()> arches;
    std::ranges::transform(kArches, arches.begin(), &Arch::name);
    require_all_known(member_path(at, "arches"), conditions.arches, arches, problems);
    const std::string& kernel = conditions.min_kernel;
    if (!kernel.empty() && !parse_version(kernel))
        problems.add(member_path(at, "minKernel"), expected_but_found(kernel, "a version such as 4.8"));
}

bool holds_here(const RuleConditions& includes, const RuleConditions& excludes) {
    if (!excludes.arches.empty() && has_native(excludes.arches)) return false;
    if (!excludes.min_kernel.empty() && kernel_is(excludes.min_kernel)) return false;
    if (!includes.caps.empty()) return false;
    if (!includes.arches.empty() && !has_native(includes.arches)) return false;
    return includes.min_kernel.empty() || kernel_is(includes.min_kernel);
}

}  // namespace pinfold
