// The semantic rules of the runtime specification 1.3: what a configuration may ask for, and what contradicts itself.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/spec.hpp"
#include "spec/reader.hpp"

namespace pinfold {

// Pure: looks at nothing but the configuration.
void validate_spec(const Spec& spec, Problems& problems);

// The same rules for a part; `at` is its path in the document, empty where it is the whole document (exec).
void validate_process(const Process& process, std::string_view at, Problems& problems);

void validate_linux(const Linux& linux_, Problems& problems);
void validate_seccomp(const Seccomp& seccomp, Problems& problems);

// The namespace of that type that the container gets, new or joined; null where it stays in the caller's.
const Namespace* find_namespace(const Linux& linux_, NamespaceType type);

// Ranges that the kernel would take: not empty, not beyond the last id, no overlap, not too many.
void validate_id_mappings(std::string_view path, const std::vector<IdMapping>& mappings, Problems& problems);

// What the configuration says of files outside: the root must be there and be a directory.
void validate_bundle(const Spec& spec, const std::string& bundle, Problems& problems);

}  // namespace pinfold
