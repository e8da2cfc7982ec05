// Checking how linux.resources is translated into writes, as one line of text per case.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/strings.hpp"
#include "cgroup/plan.hpp"
#include "support/testing.hpp"

namespace pinfold::testing {

// "memory.max=100; memory.swap.max=50", or the error.
inline std::string words_of(const Result<std::vector<CgroupWrite>>& writes) {
    if (!writes) return concat("error: ", writes.error().message);
    std::vector<std::string> items;
    for (const CgroupWrite& write : *writes) {
        items.push_back(concat(write.file, '=', write.value));
        if (!write.alternate_file.empty())
            items.back() += concat(" or ", write.alternate_file, '=', write.alternate_value);
    }
    return join(items, "; ");
}

struct TranslationCase {
    std::function<void(Resources&)> set;
    const char* expected;
};

using Translate = Result<std::vector<CgroupWrite>> (*)(const Resources&);

inline void check_translation(Translate translate, std::initializer_list<TranslationCase> cases) {
    for (const TranslationCase& test : cases) {
        Resources resources;
        test.set(resources);
        CHECK(words_of(translate(resources)) == test.expected);
    }
}

}  // namespace pinfold::testing
