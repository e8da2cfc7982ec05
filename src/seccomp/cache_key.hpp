// What decides which program is compiled: equal keys, equal programs.
#pragma once

#include <string>

#include "pinfold/spec.hpp"

namespace pinfold {

// All of it, not a digest: who compares two of them is as sure as can be, and faster than who hashes one.
std::string seccomp_cache_key(const Seccomp& profile);

// The file that a program of this key is in.
std::string seccomp_cache_name(const std::string& key);

// Finds damage, and spreads names. It is no defence: a file is believed for who owns it, and for the key in it.
uint64_t quick_hash(std::string_view bytes);

}  // namespace pinfold
