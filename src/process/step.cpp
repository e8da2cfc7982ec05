// What is told of steps.
#include "process/step.hpp"

#include <cstdio>

namespace pinfold {

std::string hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
}

std::string octal(unsigned value) {
    char text[16];
    std::snprintf(text, sizeof text, "%04o", value);
    return text;
}

Error in_step(const char* name, Error error) {
    if (error.message.starts_with(name)) return error;
    return std::move(error).within(name);
}

}  // namespace pinfold
