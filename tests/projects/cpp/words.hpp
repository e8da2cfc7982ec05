// How many words there are in a text.
#pragma once

#include <cstddef>
#include <string_view>

size_t count_words(std::string_view text);
