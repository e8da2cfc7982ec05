// What statistics are made of: control files as numbers, and numbers as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pinfold {

class JsonObject {
public:
    // The value is JSON already.
    JsonObject& add(std::string_view key, std::string_view json);
    JsonObject& add(std::string_view key, uint64_t number);
    JsonObject& add_if_any(std::string_view key, const std::string& json);
    std::string text() const;

private:
    std::string text_;
};

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
