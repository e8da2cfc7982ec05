// Audit logs. The input is the text of the head file, and after it the lines of the log. One that begins with "+" is
// given its hash here: no fuzzer would find any, and what lies behind the hash would never be reached.
#include <fcntl.h>

#include "audit/log.hpp"
#include "audit/tail.hpp"
#include "audit/verify.hpp"
#include "base/fs.hpp"
#include "base/sha256.hpp"
#include "base/strings.hpp"
#include "fuzz/target.hpp"
#include "support/temp_dir.hpp"

namespace pinfold::fuzz {

namespace {

std::string sealed(std::string_view line) {
    if (!line.starts_with('+')) return std::string(line);
    const std::string_view body = line.substr(1);
    return concat(body, ",\"hash\":\"", to_hex(sha256(concat(body, '}'))), "\"}");
}

std::string sealed_log(std::string_view lines) {
    std::vector<std::string> log;
    for (const std::string_view line : split(lines, '\n')) log.push_back(sealed(line));
    return join(log, "\n");
}

void store(const std::string& path, std::string_view text) {
    const Result<UniqueFd> file = open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must_hold(file && write_once(file->get(), text, path), "the input can be stored");
}

}  // namespace

void try_audit(std::string_view input) {
    static const testing::TempDir dir;
    const std::string path = dir.file("log");
    const size_t head_end = std::min(input.find('\n'), input.size());
    store(path + ".head", input.substr(0, head_end));
    store(path, sealed_log(input.substr(std::min(head_end + 1, input.size()))));
    const Result<AuditReport> before = verify_audit(path);
    must_hold(before.has_value(), "every log can be verified");
    const Result<AuditLog> log = AuditLog::open(path);
    must_hold(log && log->append({"create", "id", "", {}}), "every log can be continued");
    const Result<AuditReport> after = verify_audit(path);
    must_hold(after && after->fault.empty() == before->fault.empty(),
              "what is appended neither hides nor makes faults");
}

}  // namespace pinfold::fuzz
