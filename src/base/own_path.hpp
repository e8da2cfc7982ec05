// Where this program's file lies, for what is installed beside it.
#pragma once

#include <string>

namespace pinfold {

// Of a read-only clone or a copy of the file, which has no place of its own: its argv[0], which whoever started it has
// to set. Not necessarily absolute.
std::string own_path();

}  // namespace pinfold
