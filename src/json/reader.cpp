// The JSON reader: nlohmann's event parser fills our own tree. Its exceptions stop in this file.
#include "json/reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

std::string place(std::string_view text, size_t offset) {
    const std::string_view before = text.substr(0, offset);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t column = offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0: the first line
    return concat(line, ':', column);
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: REASON; last read: 'TEXT'" gives REASON.
// The text that was read is left out: it may be long, and the place says enough.
std::string_view reason(std::string_view what) {
    if (const size_t end = what.find("] "); end != what.npos) what.remove_prefix(end + 2);
    if (const size_t column = what.find(", column "); column != what.npos) {
        what.remove_prefix(what.find(": ", column) + 2);
    }
    return what.substr(0, what.find("; last read: "));
}

const std::string* twice_among_few(const Json::Object& object) {
    for (size_t i = 1; i < object.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            if (object[i].key == object[j].key) return &object[i].key;
        }
    }
    return nullptr;
}

const std::string* twice_among_many(const Json::Object& object) {
    std::vector<const std::string*> keys;
    keys.reserve(object.size());
    for (const Json::Member& member : object) keys.push_back(&member.key);
    std::sort(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return *a < *b; });
    const auto twice =
        std::adjacent_find(keys.begin(), keys.end(), [](const auto* a, const auto* b) { return *a == *b; });
    return twice == keys.end() ? nullptr : *twice;
}

// The key that an object holds twice, or null. Objects are small, but a hostile one with 100,000 keys stays cheap.
const std::string* key_given_twice(const Json::Object& object) {
    return object.size() <= 16 ? twice_among_few(object) : twice_among_many(object);
}

// Receives the parser's events. The names and signatures are the parser's; false stops it.
class TreeBuilder {
public:
    TreeBuilder(std::string_view text, size_t most_values) : text_(text), most_(most_values), left_(most_values) {
        open_.reserve(16);
    }

    Json& root() { return root_; }
    // What follows the document's name: ":3:7: ..." for a place in the text, ": linux.sysctl: ..." for a path.
    const std::string& failure() const { return failure_; }

    bool null() { return add(std::monostate()); }
    bool boolean(bool value) { return add(value); }
    bool number_integer(int64_t value) { return add(value); }
    bool number_unsigned(uint64_t value) { return add(value); }
    bool number_float(double value, const std::string&) { return add(value); }
    bool string(std::string& value) { return add(std::move(value)); }
    bool binary(nlohmann::json::binary_t&) { return false; }  // never sent for a text

    bool start_object(size_t) { return open(Json::Object()); }
    bool start_array(size_t) { return open(Json::Array()); }
    bool end_array() { return close(); }
    bool end_object() {
        const std::string* twice = key_given_twice(*open_.back()->object());
        if (twice) return fail(concat(": ", member_path(open_path(), *twice), ": this key is given twice"));
        return close();
    }
    bool key(std::string& name) {
        std::get<Json::Object>(open_.back()->value).push_back({std::move(name), {}});
        return true;
    }
    bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
        return fail(concat(':', place(text_, position > 0 ? position - 1 : 0), ": ", reason(error.what())));
    }

private:
    // Where the next value goes. Only the innermost open container grows, so the pointers in open_ stay valid.
    Json& next_slot() {
        if (open_.empty()) return root_;
        if (auto* array = std::get_if<Json::Array>(&open_.back()->value)) return array->emplace_back();
        return std::get<Json::Object>(open_.back()->value).back().value;
    }

    bool count() {
        if (left_ == 0) return fail(concat(": has more values than the ", most_, " that are allowed"));
        --left_;
        return true;
    }

    template <class Value>
    bool add(Value&& value) {
        if (!count()) return false;
        next_slot().value = std::forward<Value>(value);
        return true;
    }

    template <class Container>
    bool open(Container container) {
        if (open_.size() == kMaxJsonDepth) return fail(concat(": nested deeper than ", kMaxJsonDepth, " levels"));
        if (!count()) return false;
        Json& slot = next_slot();
        slot.value = std::move(container);
        open_.push_back(&slot);
        return true;
    }

    bool close() {
        open_.pop_back();
        return true;
    }

    bool fail(std::string failure) {
        failure_ = std::move(failure);
        return false;
    }

    // The path of the innermost open container: in each one it is the last value that is open.
    std::string open_path() const {
        std::string path;
        for (size_t i = 0; i + 1 < open_.size(); ++i) {
            const Json& parent = *open_[i];
            path = parent.array() ? element_path(path, parent.array()->size() - 1)
                                  : member_path(path, parent.object()->back().key);
        }
        return path;
    }

    std::string_view text_;
    size_t most_;
    size_t left_;  // values that may still come
    Json root_;
    std::vector<Json*> open_;
    std::string failure_;
};

bool is_of_number(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'; }

// Where a string or a number begins that is longer than that; npos: nowhere. Found before the parser meets it.
size_t find_longer(std::string_view text, size_t longest) {
    if (text.size() <= longest) return text.npos;  // as ordinary documents are
    size_t begin = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (in_string && text[i] == '\\') ++i;
        else if (text[i] == '"') in_string = !in_string;
        else if (!in_string && !is_of_number(text[i])) begin = i + 1;
        if (i >= begin && i - begin > longest + 1) return begin;  // a string has two quotes
    }
    return text.npos;
}

}  // namespace

bool names_standard_input(std::string_view path) { return path == "-" || path == "/dev/stdin"; }

Result<std::string> read_document(const std::string& path) { return read_regular(path, kMaxDocument); }

Result<std::string> read_document_or_input(const std::string& path) {
    if (!names_standard_input(path)) return read_document(path);
    return read_at_most(STDIN_FILENO, "standard input", kMaxDocument);
}

Result<Json> parse_json(std::string_view text, std::string_view name, JsonBounds bounds) {
    if (const size_t begin = find_longer(text, bounds.longest); begin != text.npos) {
        return plain_error(concat(name, ':', place(text, begin), ": has more than ", bounds.longest,
                                  " bytes, allowed: at most that many in a string or a number"));
    }
    // The parser takes a NUL byte for the end of the text, and would not look at what follows.
    if (const size_t nul = text.find('\0'); nul != text.npos) {
        return plain_error(concat(name, ':', place(text, nul), ": a NUL byte"));
    }
    try {
        TreeBuilder builder(text, bounds.values);
        const bool whole = nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder);
        if (!whole) return plain_error(concat(name, builder.failure()));
        return std::move(builder.root());
    } catch (const std::exception& error) {
        return plain_error(concat(name, ": cannot be read as JSON: ", error.what()));
    }
}

}  // namespace pinfold
