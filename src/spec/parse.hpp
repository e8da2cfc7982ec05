// From JSON to typed configuration. Wrong types, missing properties and numbers out of range become problems; unknown
// properties are ignored, as the specification asks. Whether the values make sense is validate.hpp's question.
#pragma once

#include <set>
#include <string>

#include "pinfold/spec.hpp"
#include "spec/reader.hpp"

namespace pinfold {

// consumed, where given, receives the path of every property that was read, without indices: "mounts[].destination".
Spec parse_spec(const Json& root, Problems& problems, std::set<std::string>* consumed = nullptr);

Spec parse_spec(Json&& root, Problems& problems);  // the tree is gone afterwards

// A process document of its own, as exec gets one.
Process parse_process(const Json& root, Problems& problems);

// A part of seccomp profiles, too.
void read(const Reader& object, Seccomp& seccomp);

}  // namespace pinfold
