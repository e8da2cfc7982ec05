// linux.resources.devices as writes to devices.allow and devices.deny of cgroup v1.
// A group there has one verdict for all devices, and a list of exceptions from it in which all entries count alike.
// So the rules, of which a later one outdoes those before it, are first brought into that form.
#include "cgroup/legacy_devices.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr int64_t kAny = -1;

// Access is of read and write alone: making a node is always allowed, since using it is what counts.
struct Entry {
    char type = 'c';
    int64_t major = kAny;
    int64_t minor = kAny;
    std::string access = "rw";

    bool covers(const Entry& other) const {
        return type == other.type && (major == kAny || major == other.major) && (minor == kAny || minor == other.minor);
    }
    bool overlaps(const Entry& other) const {
        const auto meet = [](int64_t a, int64_t b) { return a == kAny || b == kAny || a == b; };
        return type == other.type && meet(major, other.major) && meet(minor, other.minor) &&
               access.find_first_of(other.access) != std::string::npos;
    }
    std::string text() const {
        const auto number = [](int64_t value) { return value == kAny ? std::string("*") : std::to_string(value); };
        return concat(type, ' ', number(major), ':', number(minor), ' ', access);
    }
};

// What the specification's default devices and terminals need.
const Entry kStandard[] = {
    {'c', 1, 3},  // null
    {'c', 1, 5},  // zero
    {'c', 1, 7},  // full
    {'c', 1, 8},  // random
    {'c', 1, 9},  // urandom
    {'c', 5, 0},  // tty
    {'c', 5, 1},  // console
    {'c', 5, 2},  // ptmx
    {'c', 136},   // pts/*
};

class Verdicts {
public:
    Result<void> decide(bool allow, const Entry& entry) {
        if (allow != otherwise_) {
            add(entry);
            return {};
        }
        for (Entry& exception : exceptions_) {
            if (!entry.overlaps(exception)) continue;
            if (!entry.covers(exception)) {
                return plain_error(concat("linux.resources.devices: cgroup v1 cannot ", allow ? "allow" : "deny", " '",
                                          entry.text(), "' and ", allow ? "deny" : "allow", " the rest of '",
                                          exception.text(), "'"))
                    .with_hint("name the devices one by one");
            }
            std::erase_if(exception.access, [&](char c) { return entry.access.find(c) != std::string::npos; });
        }
        std::erase_if(exceptions_, [](const Entry& exception) { return exception.access.empty(); });
        return {};
    }
    void decide_all(bool allow) {
        otherwise_ = allow;
        exceptions_.clear();
    }

    // The kernel forgets a group's exceptions when it is told "a".
    std::vector<CgroupWrite> writes() const {
        const char* all = otherwise_ ? "devices.allow" : "devices.deny";
        const char* some = otherwise_ ? "devices.deny" : "devices.allow";
        std::vector<CgroupWrite> writes = {write(all, "a")};
        for (const Entry& entry : exceptions_) writes.push_back(write(some, entry.text()));
        if (otherwise_) return writes;
        for (const char* node : {"c *:* m", "b *:* m"}) writes.push_back(write(some, node));
        return writes;
    }

private:
    // Engines list the standard devices as well.
    void add(const Entry& entry) {
        const bool known = std::ranges::any_of(exceptions_, [&](const Entry& other) {
            return other.covers(entry) && entry.access.find_first_not_of(other.access) == std::string::npos;
        });
        if (!known) exceptions_.push_back(entry);
    }

    static CgroupWrite write(const char* file, std::string value) {
        return {file, std::move(value), "linux.resources.devices"};
    }

    bool otherwise_ = false;
    std::vector<Entry> exceptions_;
};

std::string access_of(const DeviceRule& rule) {
    std::string access;
    for (const char c : {'r', 'w'}) {
        if (rule.access.empty() || rule.access.find(c) != std::string::npos) access += c;
    }
    return access;
}

// Engines write -1 for "any".
Result<void> decide(const DeviceRule& rule, Verdicts& verdicts) {
    Entry entry{rule.type, std::max(rule.major.value_or(kAny), kAny), std::max(rule.minor.value_or(kAny), kAny),
                access_of(rule)};
    if (entry.access.empty()) return {};
    const bool any_type = rule.type != 'b' && rule.type != 'c';
    const bool any_access = entry.access.size() == 2;
    if (any_type && any_access && entry.major == kAny && entry.minor == kAny) {
        verdicts.decide_all(rule.allow);
        return {};
    }
    for (const char type : {'c', 'b'}) {
        entry.type = type;
        if (any_type || rule.type == type) TRY(verdicts.decide(rule.allow, entry));
    }
    return {};
}

}  // namespace

Result<std::vector<CgroupWrite>> legacy_device_writes(std::span<const DeviceRule> rules) {
    Verdicts verdicts;
    for (const DeviceRule& rule : rules) TRY(decide(rule, verdicts));
    for (const Entry& entry : kStandard) TRY(verdicts.decide(true, entry));
    return verdicts.writes();
}

}  // namespace pinfold
