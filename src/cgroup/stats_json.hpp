// What statistics are made of: control files as numbers, and numbers as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/writer.hpp"

namespace pinfold {

// Empty, or 0, where the controller or the kernel has no such file.
std::string text_of(int group, const std::string& file);
uint64_t number_in(int group, const std::string& file);

// Lines of "KEY NUMBER".
struct Entry {
    std::string_view key;
    uint64_t value;
};
std::vector<Entry> entries_of(std::string_view text);
uint64_t value_of(const std::vector<Entry>& entries, std::string_view key);
std::string to_json(const std::vector<Entry>& entries);

struct MemoryEntry {
    uint64_t limit = 0;
    uint64_t usage = 0;
    uint64_t most = 0;
    uint64_t failures = 0;
};
std::string to_json(const MemoryEntry& entry);

}  // namespace pinfold
