// The file beside the log that says how far it goes, so that lines which are taken from its end are missed.
#pragma once

#include <string>

#include "audit/line.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

struct Head {
    ChainEnd end;
    // Hash of a line that is being written. If it stays, the writer has died: the line may be there, in part or not at
    // all.
    std::string next;

    bool is_at(const ChainEnd& other) const;
};

// One that is missing, or is no head, is that of an empty log. One that cannot be read is an error: it may be whole.
Result<Head> read_head(const std::string& log);
Result<void> write_head(const std::string& log, const Head& head);

}  // namespace pinfold
