// One line of the audit log: an event, who caused it, and the hashes that chain it to the line before.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "pinfold/receipt.hpp"

namespace pinfold {

struct AuditEvent {
    std::string event;  // "create", "exec", "denied", ...
    std::string id;
    std::string config_sha256;  // empty: left out
    std::vector<std::pair<std::string, std::string>>
        members;  // what else there is to say: a name, and JSON on one line
};

// The same event, with none of its members longer than kMostOfText or, of other things than a text or a list of texts,
// kMostOfOther: who comes by sudo(8) chooses them, and must not fill the log. What is longer is cut, or null, and a
// member NAME_cut tells the size and the digest of the whole, as JSON.
inline constexpr size_t kMostOfText = size_t{16} << 10;
inline constexpr size_t kMostOfOther = size_t{64} << 10;
AuditEvent bounded(AuditEvent event);

// The end of the chain so far. Before the first line it is this one.
struct ChainEnd {
    uint64_t seq = 0;
    std::string hash;
    bool operator==(const ChainEnd&) const = default;
};

struct ChainedLine {
    std::string text;  // without the newline
    ChainEnd end;      // of the chain with this line
};

// The process that has started us, as JSON. To be asked before there is a second process of us, whose parent is
// another, and which may have let go of the environment.
std::string caller_text();

// The line for an event that happens now.
ChainedLine compose_line(const AuditEvent& event, const std::string& caller, const ChainEnd& before);

struct AuditRecord {
    ChainEnd end;      // with this line
    std::string prev;  // hash of the line before
    std::string event;
    Json json;
};

// Nothing where the text is no such line, or where its hash does not fit.
std::optional<AuditRecord> parse_line(std::string_view text);

// Events that the log has to tell of itself.
inline constexpr std::string_view kTornEvent = "torn";  // a crash had cut a line short
inline constexpr std::string_view kGapEvent = "gap";    // the log did not end as it was left

// What a line of the log tells of text before it that is no line.
AuditEvent note_of(std::string_view event, std::string_view text, const ChainEnd& expected);
bool is_note_of(const AuditRecord& record, std::string_view text);

// What the kernel said of a container that was about to start.
AuditEvent receipt_event(const std::string& id, const Receipt& receipt);

}  // namespace pinfold
