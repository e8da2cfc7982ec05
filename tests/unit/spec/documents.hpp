// Documents for the tests: files of tests/data, and a good configuration with a few edits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.hpp"
#include "spec/reader.hpp"
#include "support/source_root.hpp"

namespace pinfold::testing {

// A file of the project as a document; the test fails where it is none.
Json document(const std::string& path_in_project);

Json json(std::string_view text);

// The smallest configuration that pinfold runs, with namespaces of every type but user, cgroup and time.
Json good_config();

// {"process.rlimits[0].type", "\"RLIMIT_CPU\""}: puts the value there, and makes what is missing on the way.
// Without a value, the property is removed.
struct Edit {
    std::string_view path;
    std::string_view value;
};
Json edited(Json root, const std::vector<Edit>& edits);

// "path: message" of each.
std::vector<std::string> lines(const Problems& problems);

// All that is said of a configuration without looking at files.
std::vector<std::string> problems_of(const Json& config);

}  // namespace pinfold::testing
