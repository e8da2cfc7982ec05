// Whether an audit log is as it was written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pinfold/result.hpp"

namespace pinfold {

struct AuditReport {
    size_t lines = 0;                  // up to the fault
    std::vector<std::string> remarks;  // what a crash has left, which is no fault
    std::string fault;                 // the first one: "line 3 was changed: ..."; empty: none
};

Result<AuditReport> verify_audit(const std::string& path);

}  // namespace pinfold
