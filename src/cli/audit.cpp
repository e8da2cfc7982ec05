// pinfold audit show and verify.
#include <fcntl.h>

#include <algorithm>
#include <array>

#include "audit/line.hpp"
#include "audit/verify.hpp"
#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "policy/policy.hpp"

namespace pinfold {

namespace {

Result<std::string> file_to_read(const std::string& file, const CommandLine& line) {
    if (!file.empty()) return file;
    if (!line.global.audit.empty()) return line.global.audit;
    const std::vector<std::string> files = audit_files(line.gate->policies());
    if (!files.empty()) return files.front();
    return plain_error("no policy names an audit log").with_hint("name the file");
}

// A value as it stands in the log, without line breaks.
std::string on_one_line(const Json& json) {
    std::string out;
    bool in_indent = false;
    for (const char c : json_text(json)) {
        in_indent = c == '\n' || (in_indent && c == ' ');
        if (!in_indent) out += c;
    }
    return out;
}

std::string caller_of(const Json& json) {
    const Json* caller = json.find("caller");
    if (!caller) return "";
    const Json* uid = caller->find("uid");
    const Json* sudo = caller->find("sudo_uid");
    return concat("#", uid ? on_one_line(*uid) : "", sudo ? concat(" for #", on_one_line(*sudo)) : "", " ",
                  printable(caller->text("program")));
}

// All that pinfold-audit(1) lists.
constexpr auto kEvents = std::to_array<std::string_view>(
    {"run", "create",   "start",   "exec", "kill",    "update", "pause", "resume", "delete", "stop", "prune",
     "end", "exec-end", "sandbox", "copy", "receipt", "denied", "limit", "policy", "torn",   "gap"});

// One that no version has; what another version has logged is there to be seen.
Result<void> check_event(const std::string& event, bool was_found) {
    if (event.empty() || was_found || std::ranges::find(kEvents, event) != kEvents.end()) return {};
    return plain_error(concat("--event ", quoted(event), ": there is no such event, only ",
                              join(std::vector<std::string>(kEvents.begin(), kEvents.end()), ", ")));
}

// What the event alone has.
std::string details_of(const Json& json) {
    static constexpr auto kCommon =
        std::to_array<std::string_view>({"seq", "time", "event", "id", "caller", "config_sha256", "prev", "hash"});
    std::string out;
    for (const Json::Member& member : *json.object()) {
        if (std::ranges::find(kCommon, member.key) != kCommon.end()) continue;
        out += concat(out.empty() ? "" : " ", printable(member.key), "=", on_one_line(member.value));
    }
    return out;
}

using Row = std::array<std::string, 6>;

Row row_of(const AuditRecord& record) {
    const std::string time = record.json.text("time");
    return {std::to_string(record.end.seq), printable(concat(time.substr(0, 19), "Z")),
            printable(record.event),        printable(record.json.text("id")),
            caller_of(record.json),         details_of(record.json)};
}

std::string table(const std::vector<Row>& rows) {
    Row widest;
    for (const Row& row : rows) {
        for (size_t i = 0; i < row.size(); ++i) widest[i].resize(std::max(widest[i].size(), row[i].size() + 2), ' ');
    }
    std::string text;
    for (const Row& row : rows) {
        for (size_t i = 0; i + 1 < row.size(); ++i) text += row[i] + widest[i].substr(row[i].size());
        text += row.back() + "\n";
    }
    return text;
}

bool is_wanted(const AuditRecord& record, const AuditOptions& options) {
    return (options.container.empty() || record.json.text("id") == options.container) &&
           (options.event.empty() || record.event == options.event);
}

}  // namespace

Result<int> verb_audit_show(const AuditOptions& options, const CommandLine& line) {
    const std::string file = TRY(file_to_read(options.file, line));
    const UniqueFd log = TRY(open_regular(AT_FDCWD, file));
    const std::string text = TRY(read_all(log.get(), file));
    std::vector<Row> rows = {{"SEQ", "TIME", "EVENT", "ID", "CALLER", "DETAILS"}};
    std::string lines;
    bool damaged = false, found = false;
    for (const std::string_view entry : split(text, '\n')) {
        const std::optional<AuditRecord> record = parse_line(entry);
        damaged = damaged || (!record && !entry.empty());
        if (!record || !is_wanted(*record, options)) continue;
        found = true;
        const bool as_it_is = printable(entry) == entry;  // older lines may have what is escaped today
        if (options.json) lines += concat(as_it_is ? entry : on_one_line(record->json), '\n');
        else rows.push_back(row_of(*record));
    }
    TRY(check_event(options.event, found));
    if (damaged) log_warning(concat(file, " has damaged lines, which are left out: see pinfold audit verify"));
    TRY(print(options.json ? lines : table(rows)));
    return 0;
}

Result<int> verb_audit_verify(const AuditOptions& options, const CommandLine& line) {
    const std::string file = TRY(file_to_read(options.file, line));
    const AuditReport report = TRY(verify_audit(file));
    if (!report.fault.empty()) return plain_error(concat(file, ": ", report.fault));
    std::string text = concat(line.gate->in_callers_words(file), ": ", report.lines, " lines, chain whole\n");
    for (const std::string& remark : report.remarks) text += concat(remark, '\n');
    TRY(print(text));
    return 0;
}

}  // namespace pinfold
