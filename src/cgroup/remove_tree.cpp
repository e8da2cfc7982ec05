// Removing a group and all below it.
#include "cgroup/remove_tree.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

// Any group directly below, or an empty name.
Result<std::string> find_child(int group) {
    std::string child;
    TRY(visit_children(group, [&](std::string_view name) {
        child = name;
        return false;
    }));
    return child;
}

Result<void> remove_leaf(int parent, const std::string& name, const Deadline& deadline, const EmptyGroup& empty) {
    for (;;) {
        if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
        if (errno != EBUSY || deadline.left_ms() == 0) return errno_error(concat("remove ", name));
        const UniqueFd leaf(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (leaf) TRY(empty(leaf.get()));
    }
}

}  // namespace

// A payload can nest groups deeper than there are descriptors or stack to follow them down, so this holds one group at
// a time and goes back up by "..".
Result<void> remove_tree(UniqueFd parent, const std::string& top, const Deadline& deadline, const EmptyGroup& empty) {
    std::vector<std::string> way = {top};
    UniqueFd here = std::move(parent);
    while (!way.empty()) {
        UniqueFd group(::openat(here.get(), way.back().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!group && errno != ENOENT) return errno_error(concat("open ", way.back()));
        if (group) {
            const std::string child = TRY(find_child(group.get()));
            if (!child.empty()) {
                way.push_back(child);
                here = std::move(group);
                continue;
            }
        }
        TRY(remove_leaf(here.get(), way.back(), deadline, empty));
        way.pop_back();
        if (!way.empty()) here = TRY(open_at(here.get(), "..", O_PATH | O_DIRECTORY));
    }
    return {};
}

}  // namespace pinfold
