// The specification's JSON schemas against what pinfold writes.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace pinfold::integration {

// What is wrong with the document, by a file of tests/data/oci-schema: "linux.namespaces[0]: ...". Empty: it is valid.
std::vector<std::string> schema_problems(const nlohmann::json& document, const std::string& schema_file);

}  // namespace pinfold::integration
