// The resources section of config.json, which is also a document of its own for update.
#pragma once

#include <string_view>

#include "pinfold/spec.hpp"
#include "spec/reader.hpp"

namespace pinfold {

void read(const Reader& object, Resources& resources);
Resources parse_resources(const Json& root, Problems& problems);

// `at` is its path in the document, empty where it is the whole document.
void validate_resources(const Resources& resources, std::string_view at, Problems& problems);

}  // namespace pinfold
