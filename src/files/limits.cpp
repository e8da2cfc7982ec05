// How much a copy may amount to, and where its links may lead.
#include "files/limits.hpp"

#include <cerrno>

#include "base/strings.hpp"

namespace pinfold {

namespace {

// From a directory this deep in the tree. ".." is counted at the beginning only: after a name, which may be that of
// another link, it can lead anywhere.
bool leads_out(std::string_view target, unsigned depth) {
    if (target.starts_with('/')) return true;
    bool at_beginning = true;
    for (const std::string_view part : split(target, '/')) {
        if (part.empty() || part == ".") continue;
        if (part != "..") at_beginning = false;
        else if (!at_beginning || depth-- == 0) return true;
    }
    return false;
}

}  // namespace

Result<void> CopyBudget::add_file(unsigned depth) {
    if (depth > kMaxCopyDepth) {
        return Error{EMLINK, concat("the tree is more than ", kMaxCopyDepth, " directories deep"), {}};
    }
    if (++used_.files <= limits_.files) return {};
    return Error{EMFILE, concat("more than ", limits_.files, " files"),
                 limits_.by_option ? "--max-files raises the limit" : ""};
}

Result<void> CopyBudget::add_bytes(uint64_t count) {
    if (count <= limits_.bytes - used_.bytes) {
        used_.bytes += count;
        return {};
    }
    return Error{EFBIG, concat("more than ", limits_.bytes, " bytes"),
                 limits_.by_option ? "--max-size raises the limit" : ""};
}

Result<void> CopyBudget::allow_link(std::string_view target, unsigned depth) const {
    return leads_out(target, depth) ? allow_outward(target) : Result<void>();
}

Result<void> CopyBudget::allow_outward(std::string_view target) const {
    if (limits_.outward_links) return {};
    return plain_error(concat("the link leads out of the copied tree, to ", quoted(target)))
        .with_hint("whoever reads the copy would follow it; --outward-links copies it nevertheless");
}

}  // namespace pinfold
