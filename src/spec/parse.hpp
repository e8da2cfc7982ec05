// From JSON to typed configuration. Wrong types, missing properties and numbers out of range become problems; unknown
// properties are ignored, as the specification asks. Whether the values make sense is validate.hpp's question.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "json/json.hpp"
#include "pinfold/result.hpp"
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

// From a bundle to a configuration that is fit to be planned with.

Result<std::string> read_config(const std::string& path);

// The error tells all that is wrong with it at once; name is the file's.
Result<Spec> parse_config(std::string_view text, const std::string& name, const std::string& bundle);

// The configuration of a container that exists: it was checked when the container was created.
Result<Spec> parse_checked_config(std::string_view text);

// The process of an exec, from a file of its own.
Result<Process> load_process(const std::string& path);

// What the specification has and pinfold does not do yet. A configuration that asks for it is refused, never half
// obeyed.
struct Unsupported {
    std::string_view path;  // without indices, as in "linux.seccomp.listenerPath"
    std::string_view why;
};

std::span<const Unsupported> not_yet_supported();

// Whether a configuration may use this property: neither it nor what it is part of is in the list.
bool is_supported(std::string_view path);

// Properties of other platforms, which are to be ignored here.
std::span<const std::string_view> other_platforms();

// A problem for each property of the list that the document really uses. Engines send zeros, false and empty values
// for what is unset; those ask for nothing. `at` is the path of the document in a config.json: "process" for a
// process of its own, "linux.resources" for resources.
void refuse_unsupported(const Json& root, Problems& problems, std::string_view at = {});

}  // namespace pinfold
