// A container's id, its record's form on disk, and the state that `pinfold state` prints.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "state/store.hpp"

namespace pinfold {

// A name of directories and cgroups, so only harmless characters.
Result<void> check_container_id(const std::string& id);

// In pieces, since its annotations may be long.
void write_record(const ContainerRecord& record, const std::function<void(std::string_view)>& put);
std::string record_to_json(const ContainerRecord& record);
Result<ContainerRecord> record_from_json(std::string_view text);

// As the specification wants it, plus what callers of runc know: rootfs, created, owner.
std::string state_to_json(const ContainerState& state);
std::string state_to_json_line(const ContainerState& state);  // the same without line breaks

}  // namespace pinfold
