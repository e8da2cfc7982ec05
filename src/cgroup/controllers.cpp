// The controllers that limits need: whether this host has them, and their way down to a container's group.
#include "cgroup/controllers.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/strings.hpp"
#include "cgroup/control_files.hpp"

namespace pinfold {

namespace {

constexpr const char* kPassedOn = "/cgroup.subtree_control";

std::vector<std::string> missing_words(std::string_view list, const std::vector<std::string>& wanted) {
    std::vector<std::string> missing;
    std::ranges::copy_if(wanted, std::back_inserter(missing), [&](const auto& word) { return !has_word(list, word); });
    return missing;
}

// "linux.resources.memory.limit": what a controller is asked for.
std::string properties_under(const std::vector<std::string>& controllers, const CgroupPlan& plan) {
    std::vector<CgroupWrite> asking;
    std::ranges::copy_if(plan.writes, std::back_inserter(asking), [&](const CgroupWrite& write) {
        return std::ranges::find(controllers, controller_of(write.file)) != controllers.end();
    });
    return properties_of(asking);
}

std::vector<std::string> words_of(std::string_view list) {
    while (list.ends_with('\n')) list.remove_suffix(1);
    std::vector<std::string> words;
    for (const std::string_view word : split(list, ' ')) {
        if (!word.empty()) words.emplace_back(word);
    }
    return words;
}

// What limits need must be passed on.
Result<void> enable_needed(int mount, const std::string& group, std::string_view enabled, const CgroupPlan& plan) {
    const std::vector<std::string> missing = missing_words(enabled, plan.controllers);
    if (missing.empty()) return {};
    const auto written = write_file_at(mount, group + kPassedOn, concat("+", join(missing, " +")));
    if (written) return {};
    const std::string name = group == "." ? plan.place.mount : concat(plan.place.mount, "/", group);
    if (written.error().code != EBUSY) return Error(written.error()).within(properties_under(missing, plan));
    return plain_error(concat(properties_under(missing, plan), ": cgroup ", name,
                              " holds processes, so it cannot pass '", join(missing, "', '"),
                              "' on to groups below it"))
        .with_hint("move them into a group of their own, or set linux.cgroupsPath below another group");
}

// Passes all that the host has on to the groups below: a container without limits is to be counted, too. Written only
// where missing: a group that belongs to somebody else may well be readable only.
Result<void> enable_controllers(int mount, const std::string& group, const std::vector<std::string>& available,
                                const CgroupPlan& plan) {
    if (available.empty()) return {};
    const std::string enabled = TRY(read_control(mount, group + kPassedOn));
    const std::vector<std::string> missing = missing_words(enabled, available);
    if (missing.empty()) return {};
    if (write_file_at(mount, group + kPassedOn, concat("+", join(missing, " +")))) return {};
    TRY(enable_needed(mount, group, enabled, plan));
    for (const std::string& controller : missing) {
        if (!write_file_at(mount, group + kPassedOn, "+" + controller)) {
            log_debug(concat("cgroup ", group, " does not pass ", controller, " on"));
        }
    }
    return {};
}

}  // namespace

Result<void> check_controllers(int mount, const CgroupPlan& plan) {
    if (plan.controllers.empty()) return {};
    const std::string available = TRY_IN(plan.place.mount, read_control(mount, "cgroup.controllers"));
    const std::vector<std::string> missing = missing_words(available, plan.controllers);
    if (missing.empty()) return {};
    return plain_error(concat(properties_under(missing, plan), ": this host's cgroup v2 at ", plan.place.mount,
                              " has no '", join(missing, "', '"),
                              missing.size() == 1 ? "' controller" : "' controllers"))
        .with_hint(plan.hybrid ? "nor is it mounted as cgroup v1 at /sys/fs/cgroup: mount it there, boot with "
                                 "systemd.unified_cgroup_hierarchy=1, or drop the limit"
                               : "enable it in the kernel or in the group above this mount, or drop the limit");
}

Result<void> make_ancestors(int mount, const CgroupPlan& plan) {
    const std::vector<std::string> available =
        words_of(TRY_IN(plan.place.mount, read_control(mount, "cgroup.controllers")));
    TRY(enable_controllers(mount, ".", available, plan));
    for (size_t end = plan.place.path.find('/', 1); end != std::string::npos;
         end = plan.place.path.find('/', end + 1)) {
        const std::string group = plan.place.path.substr(1, end - 1);
        if (::mkdirat(mount, group.c_str(), kCgroupMode) != 0 && errno != EEXIST) {
            return errno_error(concat("make cgroup ", plan.place.mount, '/', group));
        }
        TRY(enable_controllers(mount, group, available, plan));
    }
    return {};
}

}  // namespace pinfold
