// The receipt: what the kernel says of a container, all of it set up and its program still to be executed, beside what
// was planned.
#pragma once

#include <string>
#include <vector>

namespace pinfold {

struct ReceiptLine {
    std::string name;     // "capabilities.effective"
    std::string planned;  // "0000000000000000"
    std::string found;
    bool holds = true;  // nothing is weaker than planned
};

using Receipt = std::vector<ReceiptLine>;

}  // namespace pinfold
