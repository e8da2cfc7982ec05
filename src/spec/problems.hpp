// What is wrong with a configuration: every problem with its JSON path, collected so that all are told at once.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.hpp"
#include "json/tree.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

using Words = std::span<const std::string_view>;

struct Problem {
    std::string path;  // "linux.namespaces[2].type"; empty for the whole document
    std::string message;
};

class Problems {
public:
    // One problem per path, the first: what later checks say of a value that was refused already is only its echo.
    void add(std::string path, std::string message);

    // For a value that could not be read at all: from now on nothing is said of what is inside it either.
    void add_unreadable(std::string path, std::string message);

    bool empty() const { return items_.empty(); }
    bool has(std::string_view path) const;
    const std::vector<Problem>& items() const { return items_; }
    size_t left_out() const { return left_out_; }

private:
    std::vector<Problem> items_;
    std::vector<std::string> unreadable_;
    size_t left_out_ = 0;  // beyond a number that nobody would read, problems are only counted
};

// One line for one problem, else a heading and a line for each.
Error to_error(const Problems& problems, std::string_view file);

// How a problem is worded: what was found, and what is allowed.
// found "foo", allowed: ...   Long texts are cut.
std::string expected_but_found(std::string_view text, std::string_view allowed);
std::string expected_but_found(const Json& json, std::string_view allowed);

template <std::integral Number>
std::string expected_but_found(Number number, std::string_view allowed) {
    return concat("found ", number, ", allowed: ", allowed);
}

// found "foo", allowed: one, two, three
std::string expected_but_found(std::string_view text, Words allowed);

// The checks that many rules share.
void require_absolute(std::string path, std::string_view value, Problems& problems);
void require_all_absolute(std::string_view path, const std::vector<std::string>& values, Problems& problems);
void require_known(std::string path, std::string_view value, Words known, Problems& problems);
void require_all_known(std::string_view path, const std::vector<std::string>& values, Words known, Problems& problems);

// Where the value is not empty.
void require_index_list(std::string path, std::string_view value, Problems& problems);

// The position in the list, or its size where the value is not in it.
size_t position_of(std::string_view value, Words known);

template <std::integral Number>
void require_range(const std::string& path, Number value, std::type_identity_t<Number> least,
                   std::type_identity_t<Number> most, Problems& problems) {
    if (value < least || value > most) problems.add(path, expected_but_found(value, concat(least, " to ", most)));
}

}  // namespace pinfold
