// Files for a job, and files from it.
#include "sandbox/transfer.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "base/strings.hpp"
#include "files/receive_tree.hpp"

namespace pinfold {

namespace {

std::string last_part(std::string path) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    return path.substr(path.rfind('/') + 1);
}

bool is_directory(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Result<Transfers> Transfers::open(const SandboxJob& job, const Policies& policies) {
    Transfers transfers;
    for (const FileCopy& copy : job.copy_in) {
        const std::string label = concat("--copy-in ", quoted(copy.source));
        UniqueFd source = TRY_IN(label, open_allowed(policies, copy.source, Access::read));
        transfers.in_.push_back({std::move(source), last_name(copy.source), copy.destination, label});
    }
    for (const FileCopy& copy : job.copy_out) {
        const std::string label = concat("--copy-out ", quoted(copy.destination));
        const bool into = is_directory(copy.destination);
        UniqueFd directory = TRY_IN(label, into ? open_allowed(policies, copy.destination, Access::write)
                                                : open_parent_allowed(policies, copy.destination, Access::write));
        transfers.out_.push_back(
            {std::move(directory), last_part(into ? copy.source : copy.destination), copy.source, label});
    }
    return transfers;
}

Result<void> Transfers::copy_in(const InsideOf& sandbox) const {
    for (const Transfer& one : in_) {
        Result<CopySummary> copied = pinfold::copy_in(sandbox, one.host.get(), one.name, one.inside, {});
        if (!copied && (copied.error().code == EFBIG || copied.error().code == EMFILE))
            return std::move(copied).error().within(one.label).with_hint("--ro-bind shows it without a copy");
        TRY_IN(one.label, std::move(copied));
    }
    return {};
}

Result<void> Transfers::copy_out(const InsideOf& sandbox) const {
    for (const Transfer& one : out_) {
        TRY_IN(one.label, pinfold::copy_out(sandbox, one.inside, one.host.get(), one.name, {}));
    }
    return {};
}

}  // namespace pinfold
