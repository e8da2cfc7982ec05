// Reader: one JSON value with its place in the document, read into typed data. What does not fit becomes a problem
// that names the place, what was found and what is allowed; reading goes on.
#pragma once

#include <concepts>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/strings.hpp"
#include "json/json.hpp"
#include "pinfold/result.hpp"

namespace pinfold {

// What is wrong with a configuration: every problem with its JSON path, collected so that all are told at once.

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

// A problem for each member of the document, at whatever depth, that no Reader has read: `consumed` is what the Reader
// was given. Where a misspelt property would be lost, and nobody would notice.
void refuse_unknown(const Json& root, const std::set<std::string>& consumed, Problems& problems);

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

// Words of the document and the values that they stand for.
template <class Value>
struct Choice {
    std::string_view word;
    Value value;
};

// Not deduced: the value that is read says which type it is.
template <class Value>
using Choices = std::span<const Choice<std::type_identity_t<Value>>>;

class Reader {
public:
    // consumed, where given, receives the path of each property that was read, without indices:
    // "mounts[].destination".
    Reader(const Json& root, Problems& problems, std::set<std::string>* consumed)
        : json_(root), problems_(problems), consumed_(consumed) {}
    // Takes the strings out of the tree, so that a large document is not held twice. No property is read twice then.
    Reader(Json&& root, Problems& problems) : json_(root), problems_(problems), takes_(true) {}

    const Json& json() const { return json_; }

    // A property of this object. Null counts as absent: that is how Go programs write what is unset.
    template <class Value>
    void required(std::string_view key, Value& out) const {
        if (const Json* json = property(key)) Reader(*json, *this, key).into(out);
        else missing(key, allowed<Value>());
    }
    template <class Value>
    void optional(std::string_view key, Value& out) const {
        if (const Json* json = property(key)) Reader(*json, *this, key).into(out);
    }

    // A property that is one of a few words.
    template <class Value>
    void required_choice(std::string_view key, Value& out, Choices<Value> choices) const {
        if (const Json* json = property(key)) Reader(*json, *this, key).into_choice(out, choices);
        else missing(key, words<Value>(choices));
    }
    template <class Value>
    void optional_choice(std::string_view key, Value& out, Choices<Value> choices) const {
        if (const Json* json = property(key)) Reader(*json, *this, key).into_choice(out, choices);
    }

    // This value as a bool, a string, a number, a vector, a map from names, or a struct: for a struct there is a
    // function read(const Reader&, Struct&) that lists its properties.
    template <class Value>
    void into(Value& out) const {
        if constexpr (std::same_as<Value, bool>) into_bool(out);
        else if constexpr (std::same_as<Value, std::string>) into_string(out);
        else if constexpr (std::integral<Value>) into_number(out);
        else if constexpr (std::same_as<Value, double>) into_real(out);
        else into_composed(out);
    }

private:
    Reader(const Json& json, const Reader& parent, std::string_view key)
        : json_(json),
          problems_(parent.problems_),
          consumed_(parent.consumed_),
          takes_(parent.takes_),
          parent_(&parent),
          key_(key) {}
    Reader(const Json& json, const Reader& parent, size_t index)
        : json_(json),
          problems_(parent.problems_),
          consumed_(parent.consumed_),
          takes_(parent.takes_),
          parent_(&parent),
          index_(index) {}

    template <class Value>
    void into_number(Value& out) const {
        using Limits = std::numeric_limits<Value>;
        const uint64_t* whole = json_.unsigned_integer();
        const int64_t* negative = json_.integer();
        if (whole && std::in_range<Value>(*whole)) out = static_cast<Value>(*whole);
        else if (negative && std::in_range<Value>(*negative)) out = static_cast<Value>(*negative);
        else refuse(concat("a whole number from ", Limits::min(), " to ", Limits::max()));
    }

    template <class Value>
    void into_composed(std::vector<Value>& out) const {
        const Json::Array* items = json_.array();
        if (!items) return refuse(allowed<std::vector<Value>>());
        out.resize(items->size());
        for (size_t i = 0; i < items->size(); ++i) Reader((*items)[i], *this, i).into(out[i]);
    }
    template <class Value>
    void into_composed(std::map<std::string, Value>& out) const {
        const Json::Object* members = json_.object();
        if (!members) return refuse(allowed<std::map<std::string, Value>>());
        for (const Json::Member& member : *members) {
            const Reader entry(member.value, *this, member.key);
            entry.record();
            if (entry.has_usable_name()) entry.into(out[member.key]);
        }
    }
    template <class Value>
    void into_composed(std::optional<Value>& out) const {
        into(out.emplace());
    }
    template <class Value>
    void into_composed(Value& out) const {
        if (json_.object()) read(*this, out);
        else refuse(allowed<Value>());
    }

    template <class Value>
    void into_choice(Value& out, Choices<Value> choices) const {
        const std::string* word = json_.string();
        for (const Choice<Value>& choice : choices) {
            if (word && *word == choice.word) {
                out = choice.value;
                return;
            }
        }
        refuse(words<Value>(choices));
    }

    template <class Value>
    static std::string words(Choices<Value> choices) {
        std::string text;
        for (const Choice<Value>& choice : choices) text += concat(text.empty() ? "" : ", ", choice.word);
        return text;
    }

    template <class Value>
    struct Allowed {
        static constexpr std::string_view kWords = std::same_as<Value, bool>          ? "true or false"
                                                   : std::same_as<Value, std::string> ? "a string"
                                                   : std::integral<Value>             ? "a whole number"
                                                   : std::same_as<Value, double>      ? "a number"
                                                                                      : "an object";
    };
    template <class Value>
    struct Allowed<std::vector<Value>> {
        static constexpr std::string_view kWords = "an array";
    };
    template <class Value>
    struct Allowed<std::optional<Value>> : Allowed<Value> {};
    template <class Value>
    static std::string_view allowed() {
        return Allowed<Value>::kWords;
    }

    void into_bool(bool& out) const;
    void into_real(double& out) const;
    void into_string(std::string& out) const;
    const Json* property(std::string_view key) const;
    void record() const;
    bool has_usable_name() const;
    void missing(std::string_view key, std::string_view words) const;
    void refuse(std::string_view allowed) const;

    // Built only when there is something to say of it: a good document costs no path.
    std::string path() const;
    std::string path_without_indices() const;

    const Json& json_;
    Problems& problems_;
    std::set<std::string>* consumed_ = nullptr;
    bool takes_ = false;
    const Reader* parent_ = nullptr;
    std::string_view key_;  // where the parent is an object
    size_t index_ = 0;      // where it is an array
};

}  // namespace pinfold
