// The checks that many rules share.
#include "spec/rules.hpp"

#include <algorithm>

namespace pinfold {

void require_absolute(std::string path, std::string_view value, Problems& problems) {
    if (!value.starts_with('/')) problems.add(std::move(path), expected_but_found(value, "an absolute path"));
}

void require_all_absolute(std::string_view path, const std::vector<std::string>& values, Problems& problems) {
    for (size_t i = 0; i < values.size(); ++i) require_absolute(element_path(path, i), values[i], problems);
}

void require_index_list(std::string path, std::string_view value, Problems& problems) {
    if (!value.empty() && !parse_index_list(value)) {
        problems.add(std::move(path), expected_but_found(value, "a list such as 0-3,7"));
    }
}

size_t position_of(std::string_view value, Words known) {
    return static_cast<size_t>(std::find(known.begin(), known.end(), value) - known.begin());
}

void require_known(std::string path, std::string_view value, Words known, Problems& problems) {
    if (position_of(value, known) == known.size()) problems.add(std::move(path), expected_but_found(value, known));
}

void require_all_known(std::string_view path, const std::vector<std::string>& values, Words known, Problems& problems) {
    for (size_t i = 0; i < values.size(); ++i) require_known(element_path(path, i), values[i], known, problems);
}

const Namespace* find_namespace(const Linux& linux_, NamespaceType type) {
    const auto it = std::find_if(linux_.namespaces.begin(), linux_.namespaces.end(),
                                 [&](const Namespace& ns) { return ns.type == type; });
    return it == linux_.namespaces.end() ? nullptr : &*it;
}

}  // namespace pinfold
