// How many words there are in a text.
#include "words.hpp"

size_t count_words(std::string_view text) {
    size_t count = 0;
    bool inside = false;
    for (const char letter : text) {
        if (letter != ' ' && !inside) ++count;
        inside = letter != ' ';
    }
    return count;
}
