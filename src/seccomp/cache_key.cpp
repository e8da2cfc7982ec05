// All that decides what compile_seccomp makes of a profile, as bytes.
#include "seccomp/cache_key.hpp"

#include <seccomp.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "base/strings.hpp"

namespace pinfold {

namespace {

// Raise it whenever compile_seccomp makes another program of the same profile, or the file's layout changes.
constexpr uint32_t kFormatVersion = 3;

// Every string and list goes in behind its length, every optional behind a flag: no two profiles give the same bytes.
class KeyText {
public:
    template <class Number>
    requires std::is_unsigned_v<Number>
    void add(Number value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
    void add(const std::string& value) {
        add(uint32_t(value.size()));
        text_ += value;
    }
    void add(const std::optional<uint32_t>& value) {
        add(uint8_t{value.has_value()});
        add(value.value_or(0));
    }
    void add(const SyscallArg& arg) {
        add(arg.index);
        add(arg.value);
        add(arg.value_two);
        add(arg.op);
    }
    void add(const SyscallRule& rule) {
        add(rule.names);
        add(rule.action);
        add(rule.errno_ret);
        add(rule.args);
    }
    template <class Item>
    void add(const std::vector<Item>& items) {
        add(uint32_t(items.size()));
        for (const Item& item : items) add(item);
    }

    const std::string& text() const { return text_; }

private:
    std::string text_;
};

}  // namespace

std::string seccomp_cache_key(const Seccomp& profile) {
    KeyText key;
    key.add(kFormatVersion);
    const scmp_version* library = seccomp_version();
    key.add(library->major);
    key.add(library->minor);
    key.add(library->micro);
    key.add(seccomp_arch_native());
    key.add(profile.default_action);
    key.add(profile.default_errno_ret);
    key.add(profile.flags);
    key.add(profile.architectures);
    key.add(profile.syscalls);
    // The listener's path and metadata stay out: they do not reach the program, and differ from container to container.
    return key.text();
}

std::string seccomp_cache_name(const std::string& key) {
    char name[17];
    std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(quick_hash(key)));
    return concat(name, ".bpf");
}

// A word at a time; each step maps different states to different states, so that a changed word is never overlooked.
uint64_t quick_hash(std::string_view bytes) {
    uint64_t state = 0xcbf29ce484222325 ^ bytes.size();
    for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
        uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
        state = (state ^ word) * 0x9e3779b97f4a7c15;
        state ^= state >> 32;
    }
    return state;
}

}  // namespace pinfold
