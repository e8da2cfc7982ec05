// The child's steps from the host's file system into the container's, and what each of them does, in words.
#pragma once

#include "process/child_steps.hpp"

namespace pinfold {

// Of the plan, where the container has mounts of its own.
template <auto Part>
bool mounts_and_asks(const ChildRequest& request) {
    return request.plan->new_mount_namespace() && asks<Part>(request);
}
bool has_own_mounts(const ChildRequest& request);

Result<void> cut_off_mounts(ChildContext& context);
Actions tell_cut_off(const ChildRequest& request);
Result<void> open_root(ChildContext& context);
Actions tell_root(const ChildRequest& request);
// While the container's network is still made, or in it.
enum class MountTime : uint8_t { before_network, in_network };
bool prepares_mounts(const ChildRequest& request, MountTime time);
Result<void> prepare_mounts(ChildContext& context, MountTime time);
Actions tell_prepared_mounts(const ChildRequest& request, MountTime time);
template <MountTime Time>
constexpr ChildStep kPrepareMounts = {"mounts",
                                      [](const ChildRequest& request) { return prepares_mounts(request, Time); },
                                      [](ChildContext& context) { return prepare_mounts(context, Time); },
                                      [](const ChildRequest& request) { return tell_prepared_mounts(request, Time); }};
Result<void> place_root(ChildContext& context);
Actions tell_placed_root(const ChildRequest& request);
Result<void> place_mounts(ChildContext& context);
Actions tell_mounts(const ChildRequest& request);
Result<void> make_devices(ChildContext& context);
Actions tell_devices(const ChildRequest& request);
Result<void> make_links(ChildContext& context);
Actions tell_links(const ChildRequest& request);
Result<void> set_up_terminal(ChildContext& context);
Actions tell_terminal(const ChildRequest& request);
Result<void> mask_paths(ChildContext& context);
Actions tell_masked_paths(const ChildRequest& request);
Result<void> make_paths_readonly(ChildContext& context);
Actions tell_readonly_paths(const ChildRequest& request);
// Ends with the host's file system out of reach.
Result<void> enter_root(ChildContext& context);
Actions tell_entered_root(const ChildRequest& request);

// Than a caller's limit may allow: each mount is one until it is placed.
bool needs_more_descriptors(const Plan& plan);

// A bind's source, where the child could not.
bool is_opened_by_parent(const Plan& plan, const MountRequest& mount);

}  // namespace pinfold
