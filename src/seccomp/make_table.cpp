// Runs in the build: reads profiles and writes the table that shipped.hpp declares. A profile may extend those that are
// named before it.
#include <seccomp.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "seccomp/compile.hpp"
#include "seccomp/profile.hpp"

namespace pinfold {

namespace {

struct Entry {
    std::string name;
    Profile profile;
};

std::string name_of(std::string_view path) {
    const std::string_view file = path.substr(path.rfind('/') + 1);
    return std::string(file.substr(0, file.rfind('.')));
}

// Calls come to a kernel by its own architecture and by that of its 32-bit programs. A filter for others would never be
// asked, but it would have to be loaded: half as much time again.
void keep_possible_architectures(Seccomp& profile) {
    constexpr std::array<std::pair<uint32_t, std::array<std::string_view, 2>>, 2> kFamilies = {{
        {SCMP_ARCH_X86_64, {"SCMP_ARCH_X86_64", "SCMP_ARCH_X86"}},
        {SCMP_ARCH_AARCH64, {"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"}},
    }};
    for (const auto& [native, family] : kFamilies) {
        if (native != seccomp_arch_native()) continue;
        const auto is_foreign = [&, &members = family](const std::string& name) {
            return std::ranges::find(members, name) == members.end();
        };
        std::erase_if(profile.architectures, is_foreign);
    }
}

Result<void> check(const Profile& profile) {
    const auto has_no_reason = [](const RuleNote& note) { return note.group.empty() || note.reason.empty(); };
    if (std::ranges::any_of(profile.notes, has_no_reason)) return plain_error("a rule lacks its group or its reason");
    if (!profile.seccomp.flags.empty()) return plain_error("flags have no place in the table");
    if (!profile.seccomp.listener_path.empty()) return plain_error("a listener has no place in the table");
    return {};
}

Result<Entry> make_entry(const std::string& path, const std::vector<Entry>& known) {
    const auto find_parent = [&](const std::string& name) -> Result<Profile> {
        const auto parent = std::ranges::find(known, name, &Entry::name);
        if (parent == known.end()) return plain_error(concat(quoted(name), " is not named before this profile"));
        return parent->profile;
    };
    const std::string text = TRY(read_file(path));
    Json document = TRY(parse_json(text, path));
    Entry entry{name_of(path), TRY(parse_profile(std::move(document), {path, ""}, find_parent))};
    TRY_IN(path, check(entry.profile));
    keep_possible_architectures(entry.profile.seccomp);
    return entry;
}

// Texts of profiles are for people to read: no character in them needs more than JSON's escapes, which are C++'s too.
std::string literal(std::string_view text) { return json_quoted(text); }

std::string errno_literal(const std::optional<uint32_t>& value) { return value ? concat(*value, "U") : "{}"; }

std::string args_literal(const std::vector<SyscallArg>& args) {
    std::string out;
    for (const SyscallArg& arg : args) {
        out += concat("{", arg.index, ",", arg.value, "U,", arg.value_two, "U,", literal(arg.op), "},");
    }
    return out;
}

std::string rule_tables(const Entry& entry) {
    const std::vector<SyscallRule>& rules = entry.profile.seccomp.syscalls;
    std::string args, out = concat("constexpr ShippedRule ", entry.name, "_rules[] = {\n");
    for (size_t i = 0; i < rules.size(); ++i) {
        const SyscallRule& rule = rules[i];
        const RuleNote& note = entry.profile.notes[i];
        const std::string list = concat(entry.name, "_args_", i);
        if (!rule.args.empty())
            args += concat("constexpr ShippedArg ", list, "[] = {", args_literal(rule.args), "};\n");
        out += concat("{", literal(note.group), ",", literal(note.reason), ",", literal(join(rule.names, " ")), ",",
                      literal(rule.action), ",", errno_literal(rule.errno_ret), ",", rule.args.empty() ? "{}" : list,
                      "},\n");
    }
    return concat(args, out, "};\n");
}

std::string program_table(const Entry& entry, const SeccompFilter& filter) {
    std::string out = concat("constexpr sock_filter ", entry.name, "_program[] = {\n");
    for (const sock_filter& step : filter.program) {
        out += concat("{", step.code, ",", step.jt, ",", step.jf, ",", step.k, "U},\n");
    }
    return out + "};\n";
}

std::string profile_literal(const Entry& entry) {
    const Seccomp& seccomp = entry.profile.seccomp;
    return concat("{", literal(entry.name), ",", literal(entry.profile.description), ",",
                  literal(seccomp.default_action), ",", errno_literal(seccomp.default_errno_ret), ",",
                  literal(join(seccomp.architectures, " ")), ",", entry.name, "_rules,", entry.name, "_program},\n");
}

Result<std::string> make_table(const std::vector<std::string>& paths) {
    std::vector<Entry> entries;
    std::string parts, table;
    for (const std::string& path : paths) {
        entries.push_back(TRY(make_entry(path, entries)));
        const SeccompFilter filter = TRY_IN(path, compile_seccomp(entries.back().profile.seccomp));
        parts += rule_tables(entries.back()) + program_table(entries.back(), filter);
        table += profile_literal(entries.back());
    }
    return concat("// NOLINTBEGIN\n#include \"seccomp/shipped.hpp\"\nnamespace pinfold {\nnamespace {\n", parts,
                  "constexpr ShippedProfile profiles[] = {\n", table,
                  "};\n}\nstd::span<const ShippedProfile> shipped_table() { return profiles; }\n}\n// NOLINTEND\n");
}

}  // namespace

}  // namespace pinfold

// Usage: make-seccomp-table PROFILE... ; the table goes to standard output.
int main(int argc, char** argv) {
    const pinfold::Result<std::string> table = pinfold::make_table({argv + 1, argv + argc});
    if (table) return std::fputs(table->c_str(), stdout) < 0 ? 1 : 0;
    std::fprintf(stderr, "%s\n", table.error().message.c_str());
    return 1;
}
