// From a bundle to a configuration that is fit to be planned with.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

Result<std::string> read_config(const std::string& path);

// The error tells all that is wrong with it at once; name is the file's.
Result<Spec> parse_config(std::string_view text, const std::string& name, const std::string& bundle);

// The configuration of a container that exists: it was checked when the container was created.
Result<Spec> parse_checked_config(std::string_view text);

// The process of an exec, from a file of its own.
Result<Process> load_process(const std::string& path);

}  // namespace pinfold
