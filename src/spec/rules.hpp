// The checks that many rules share, and the parts of validate_spec that have files of their own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/spec.hpp"
#include "spec/problems.hpp"
#include "spec/words.hpp"

namespace pinfold {

void require_absolute(std::string path, std::string_view value, Problems& problems);
void require_all_absolute(std::string_view path, const std::vector<std::string>& values, Problems& problems);
void require_known(std::string path, std::string_view value, Words known, Problems& problems);
void require_all_known(std::string_view path, const std::vector<std::string>& values, Words known, Problems& problems);

// Where the value is not empty.
void require_index_list(std::string path, std::string_view value, Problems& problems);

// The position in the list, or its size where the value is not in it.
size_t position_of(std::string_view value, Words known);

template <std::integral Number>
void require_range(const std::string& path, Number value, std::type_identity_t<Number> least,
                   std::type_identity_t<Number> most, Problems& problems) {
    if (value < least || value > most) problems.add(path, expected_but_found(value, concat(least, " to ", most)));
}

// The namespace of that type that the container gets, new or joined; null where it stays in the caller's.
const Namespace* find_namespace(const Linux& linux_, NamespaceType type);

// Ranges that the kernel would take: not empty, not beyond the last id, no overlap, not too many.
void validate_id_mappings(std::string_view path, const std::vector<IdMapping>& mappings, Problems& problems);

void validate_linux(const Linux& linux_, Problems& problems);
void validate_namespaces(const Linux& linux_, Problems& problems);
void validate_sysctl(const Linux& linux_, Problems& problems);
void validate_seccomp(const Seccomp& seccomp, Problems& problems);

}  // namespace pinfold
