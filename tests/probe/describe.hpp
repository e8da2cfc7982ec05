// One file's type, mode, owner, device numbers and link target as JSON.
#pragma once

#include <sys/stat.h>

#include <string>

#include "json.hpp"

namespace probe {

Object describe(const std::string& path, const struct stat& info);

}  // namespace probe
