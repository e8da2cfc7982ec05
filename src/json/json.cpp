// A JSON document as a tree of plain values.
#include "json/json.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <exception>

#include <nlohmann/json.hpp>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

const Json* Json::find(std::string_view key) const noexcept {
    const Object* members = object();
    if (!members) return nullptr;
    for (const Member& member : *members) {
        if (member.key == key) return &member.value;
    }
    return nullptr;
}

std::string Json::text(std::string_view key) const {
    const Json* member = find(key);
    return member && member->string() ? *member->string() : std::string();
}

uint64_t Json::number(std::string_view key) const {
    const Json* member = find(key);
    return member && member->unsigned_integer() ? *member->unsigned_integer() : 0;
}

bool Json::flag(std::string_view key) const {
    const Json* member = find(key);
    return member && member->boolean() && *member->boolean();
}

static bool is_plain_word(std::string_view key) {
    const auto plain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
               c == '*';
    };
    return !key.empty() && std::all_of(key.begin(), key.end(), plain);
}

std::string member_path(std::string_view parent, std::string_view key) {
    if (!is_plain_word(key)) return concat(parent, '[', json_quoted(key), ']');
    return parent.empty() ? std::string(key) : concat(parent, '.', key);
}

std::string element_path(std::string_view parent, size_t index) { return concat(parent, '[', index, ']'); }

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

    bool start_object(size_t) {
        if (!open(Json::Object())) return false;
        // Of documents that are objects, most have some members. Of those within, which may be many, many have none.
        constexpr size_t kSome = 16;
        if (open_.size() == 1) std::get<Json::Object>(root_.value).reserve(kSome);
        return true;
    }
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

// What almost all documents are made of, by a tenth of the instructions: strings of printable ASCII without escapes,
// whole numbers of some digits, and all else that JSON is of. Whatever is not that, or is wrong, it leaves to the
// library from the beginning, which has the words for it; so it decides nothing but that a text is plain.
class PlainReader {
public:
    PlainReader(std::string_view text, TreeBuilder& tree) : at_(text.data()), end_(at_ + text.size()), tree_(tree) {}

    // False: not all of it is plain, and what the tree has got is worth nothing.
    bool read() {
        const bool is_read = value();
        skip_blanks();
        return is_read && at_ == end_;
    }

private:
    void skip_blanks() {
        while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }

    // The next byte behind blanks, if it is that one, is taken.
    bool take(char wanted) {
        skip_blanks();
        if (at_ == end_ || *at_ != wanted) return false;
        ++at_;
        return true;
    }

    bool take(std::string_view word) {
        if (!std::string_view(at_, end_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }

    bool value() {
        skip_blanks();
        switch (at_ == end_ ? '\0' : *at_) {
            case '{': return object();
            case '[': return array();
            case '"': return text() && tree_.string(word_);
            case 't': return take("true") && tree_.boolean(true);
            case 'f': return take("false") && tree_.boolean(false);
            case 'n': return take("null") && tree_.null();
            default: return number();
        }
    }

    // The tree refuses to be deeper than is allowed.
    bool object() {
        if (!take('{') || !tree_.start_object(0)) return false;
        if (take('}')) return tree_.end_object();
        do {
            skip_blanks();
            if (!text() || !tree_.key(word_) || !take(':') || !value()) return false;
        } while (take(','));
        return take('}') && tree_.end_object();
    }

    bool array() {
        if (!take('[') || !tree_.start_array(0)) return false;
        if (take(']')) return tree_.end_array();
        do {
            if (!value()) return false;
        } while (take(','));
        return take(']') && tree_.end_array();
    }

    bool text() {
        if (at_ == end_ || *at_ != '"') return false;
        const char* const begin = ++at_;
        while (at_ != end_ && *at_ >= ' ' && *at_ <= '~' && *at_ != '"' && *at_ != '\\') ++at_;
        if (at_ == end_ || *at_ != '"') return false;
        word_.assign(begin, at_);
        ++at_;
        return true;
    }

    bool number() {
        constexpr ptrdiff_t kDigits = 18;
        const bool is_negative = at_ != end_ && *at_ == '-';
        const char* const begin = is_negative ? at_ + 1 : at_;
        uint64_t number = 0;
        for (at_ = begin; at_ != end_ && *at_ >= '0' && *at_ <= '9' && at_ - begin <= kDigits; ++at_)
            number = 10 * number + uint64_t(*at_ - '0');
        const bool is_one = at_ - begin == 1, begins_with_zero = at_ != begin && *begin == '0';
        if (at_ == begin || at_ - begin > kDigits || (begins_with_zero && (!is_one || is_negative))) return false;
        if (at_ != end_ && is_of_number(*at_)) return false;
        return is_negative ? tree_.number_integer(-int64_t(number)) : tree_.number_unsigned(number);
    }

    const char* at_;
    const char* end_;
    TreeBuilder& tree_;
    std::string word_;
};

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
    if (TreeBuilder plain(text, bounds.values); PlainReader(text, plain).read()) return std::move(plain.root());
    try {
        TreeBuilder builder(text, bounds.values);
        const bool whole = nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder);
        if (!whole) return plain_error(concat(name, builder.failure()));
        return std::move(builder.root());
    } catch (const std::exception& error) {
        return plain_error(concat(name, ": cannot be read as JSON: ", error.what()));
    }
}

namespace {

void append(std::string& out, const Json& json, const std::string& indent);

void append_entry(std::string& out, const Json& json, const std::string& indent) { append(out, json, indent); }

void append_entry(std::string& out, const Json::Member& member, const std::string& indent) {
    out += concat(json_quoted(member.key), ": ");
    append(out, member.value, indent);
}

// One entry per line; what is empty stays on its line.
template <class Entries>
void append_all(std::string& out, const Entries& entries, char open, char close, const std::string& indent) {
    out += open;
    const std::string deeper = indent + "  ";
    for (const auto& entry : entries) {
        out += concat(&entry == &entries.front() ? "\n" : ",\n", deeper);
        append_entry(out, entry, deeper);
    }
    if (!entries.empty()) out += concat('\n', indent);
    out += close;
}

void append_real(std::string& out, double value) {
    char text[32];  // the longest has 24 characters
    // Minus zero would be read as a whole number, which has none; the sum of it and zero is zero.
    out.append(text, std::to_chars(std::begin(text), std::end(text), value + 0.0).ptr);
}

void append(std::string& out, const Json& json, const std::string& indent) {
    switch (json.kind()) {
        case Json::Kind::null: out += "null"; break;
        case Json::Kind::boolean: out += *json.boolean() ? "true" : "false"; break;
        case Json::Kind::integer: out += std::to_string(*json.integer()); break;
        case Json::Kind::unsigned_integer: out += std::to_string(*json.unsigned_integer()); break;
        case Json::Kind::real: append_real(out, *json.real()); break;
        case Json::Kind::string: out += json_quoted(*json.string()); break;
        case Json::Kind::array: append_all(out, *json.array(), '[', ']', indent); break;
        case Json::Kind::object: append_all(out, *json.object(), '{', '}', indent); break;
    }
}

}  // namespace

std::string json_text(const Json& json) {
    std::string out;
    append(out, json, "");
    return out + "\n";
}

JsonObject& JsonObject::add(std::string_view key, std::string_view json) {
    const std::string_view separator = by_lines_ ? ",\n  " : ",";
    text_ += concat(text_.empty() ? "" : separator, json_quoted(key), by_lines_ ? ": " : ":", json);
    return *this;
}

JsonObject& JsonObject::add_text(std::string_view key, std::string_view text) { return add(key, json_quoted(text)); }

JsonObject& JsonObject::add_if_any(std::string_view key, std::string_view json) {
    return json.empty() ? *this : add(key, json);
}

std::string JsonObject::text() const { return by_lines_ ? concat("{\n  ", text_, "\n}\n") : concat('{', text_, '}'); }

std::string json_list(const std::vector<std::string>& texts) {
    return json_array(texts, [](const std::string& text) { return json_quoted(text); });
}

std::string json_map(const std::map<std::string, std::string>& texts) {
    JsonObject object;
    for (const auto& [key, text] : texts) object.add_text(key, text);
    return object.text();
}

}  // namespace pinfold
