// From a bundle to a configuration that is fit to be planned with.
#pragma once

#include <string>

#include "pinfold/result.hpp"
#include "pinfold/spec.hpp"

namespace pinfold {

// Reads and checks the file; the error tells all that is wrong with it at once.
Result<Spec> load_spec(const std::string& bundle, const std::string& config_path);

}  // namespace pinfold
