// Precompiled once per program: the JSON library alone costs three seconds.
// Without #pragma once: this is nobody's include, and compilers warn about it in a main file.

#include <nlohmann/json.hpp>

#include "support/testing.hpp"
