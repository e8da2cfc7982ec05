// Reader: the parts that do not depend on the type that is read.
#include "spec/reader.hpp"

#include <algorithm>
#include <cstdio>

namespace pinfold {

void Reader::into_bool(bool& out) const {
    if (const bool* value = json_.boolean()) out = *value;
    else refuse(allowed<bool>());
}

void Reader::into_real(double& out) const {
    if (const double* value = json_.real()) out = *value;
    else if (const uint64_t* whole = json_.unsigned_integer()) out = static_cast<double>(*whole);
    else if (const int64_t* negative = json_.integer()) out = static_cast<double>(*negative);
    else refuse(allowed<double>());
}

// The kernel ends a string at its first NUL: it would act on another name than the one that was checked.
void Reader::into_string(std::string& out) const {
    const std::string* value = json_.string();
    if (!value) refuse(allowed<std::string>());
    else if (value->find('\0') != std::string::npos) refuse("a string without NUL");
    else if (takes_) out = std::move(const_cast<std::string&>(*value));  // of a root that was given away for that
    else out = *value;
}

bool Reader::has_usable_name() const {
    if (key_.find('\0') == std::string_view::npos) return true;
    problems_.add(path(), "the name holds a NUL");
    return false;
}

const Json* Reader::property(std::string_view key) const {
    const Json* json = json_.find(key);
    if (!json || json->is_null()) return nullptr;
    Reader(*json, *this, key).record();
    return json;
}

void Reader::record() const {
    if (consumed_) consumed_->insert(path_without_indices());
}

void Reader::missing(std::string_view key, std::string_view words) const {
    problems_.add_unreadable(member_path(path(), key), concat("missing, required: ", words));
}

void Reader::refuse(std::string_view allowed) const {
    problems_.add_unreadable(path(), expected_but_found(json_, allowed));
}

std::string Reader::path() const {
    if (!parent_) return {};
    return parent_->json_.array() ? element_path(parent_->path(), index_) : member_path(parent_->path(), key_);
}

std::string Reader::path_without_indices() const {
    if (!parent_) return {};
    const std::string parent = parent_->path_without_indices();
    return parent_->json_.array() ? parent + "[]" : member_path(parent, key_);
}

namespace {

constexpr size_t kMostProblems = 100;

bool is_inside(std::string_view path, std::string_view outer) {
    if (outer.empty()) return true;
    if (path.size() <= outer.size() || !path.starts_with(outer)) return false;
    return path[outer.size()] == '.' || path[outer.size()] == '[';
}

std::string line_of(const Problem& problem) {
    return problem.path.empty() ? problem.message : concat(problem.path, ": ", problem.message);
}

}  // namespace

void Problems::add(std::string path, std::string message) {
    const auto holds_it = [&](const std::string& outer) { return is_inside(path, outer); };
    if (std::any_of(unreadable_.begin(), unreadable_.end(), holds_it)) return;
    if (items_.size() == kMostProblems) {
        ++left_out_;
    } else if (!has(path)) {
        items_.push_back({std::move(path), std::move(message)});
    }
}

void Problems::add_unreadable(std::string path, std::string message) {
    add(path, std::move(message));
    if (unreadable_.size() < kMostProblems) unreadable_.push_back(std::move(path));
}

bool Problems::has(std::string_view path) const {
    return std::any_of(items_.begin(), items_.end(), [&](const Problem& item) { return item.path == path; });
}

Error to_error(const Problems& problems, std::string_view file) {
    const std::vector<Problem>& items = problems.items();
    if (items.size() == 1 && problems.left_out() == 0) return plain_error(concat(file, ": ", line_of(items[0])));
    std::string text = concat(file, ": ", items.size() + problems.left_out(), " problems");
    for (const Problem& item : items) text += concat("\n  ", line_of(item));
    if (problems.left_out() > 0) text += concat("\n  and ", problems.left_out(), " more");
    return plain_error(std::move(text));
}

// The pattern is the path without indices.
static void refuse_unknown_in(const Json& json, const std::string& path, const std::string& pattern,
                              const std::set<std::string>& consumed, Problems& problems) {
    for (size_t i = 0; json.array() && i < json.array()->size(); ++i) {
        refuse_unknown_in((*json.array())[i], element_path(path, i), pattern + "[]", consumed, problems);
    }
    if (!json.object()) return;
    for (const Json::Member& member : *json.object()) {
        const std::string place = member_path(pattern, member.key);
        const std::string at = member_path(path, member.key);
        if (member.value.is_null()) problems.add(at, "null");
        else if (!consumed.contains(place)) problems.add(at, "unknown");
        else refuse_unknown_in(member.value, at, place, consumed, problems);
    }
}

void refuse_unknown(const Json& root, const std::set<std::string>& consumed, Problems& problems) {
    refuse_unknown_in(root, "", "", consumed, problems);
}

namespace {

constexpr size_t kLongestQuote = 100;

std::string excerpt(std::string_view text) {
    if (text.size() <= kLongestQuote) return json_quoted(text);
    size_t end = kLongestQuote;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a UTF-8 character
    return json_quoted(text.substr(0, end)) + "...";
}

std::string describe(const Json& json) {
    switch (json.kind()) {
        case Json::Kind::null: return "null";
        case Json::Kind::boolean: return *json.boolean() ? "true" : "false";
        case Json::Kind::integer: return std::to_string(*json.integer());
        case Json::Kind::unsigned_integer: return std::to_string(*json.unsigned_integer());
        case Json::Kind::string: return excerpt(*json.string());
        case Json::Kind::array: return "an array";
        case Json::Kind::object: return "an object";
        case Json::Kind::real: break;
    }
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.17g", *json.real());
    return digits;
}

}  // namespace

std::string expected_but_found(std::string_view text, std::string_view allowed) {
    return concat("found ", excerpt(text), ", allowed: ", allowed);
}

std::string expected_but_found(const Json& json, std::string_view allowed) {
    return concat("found ", describe(json), ", allowed: ", allowed);
}

std::string expected_but_found(std::string_view text, Words allowed) {
    std::string list;
    for (const std::string_view word : allowed) list += concat(list.empty() ? "" : ", ", word);
    return expected_but_found(text, list);
}

void require_absolute(std::string path, std::string_view value, Problems& problems) {
    if (!value.starts_with('/')) problems.add(std::move(path), expected_but_found(value, "an absolute path"));
}

void require_all_absolute(std::string_view path, const std::vector<std::string>& values, Problems& problems) {
    for (size_t i = 0; i < values.size(); ++i) require_absolute(element_path(path, i), values[i], problems);
}

void require_index_list(std::string path, std::string_view value, Problems& problems) {
    if (!value.empty() && !parse_index_list(value)) {
        problems.add(std::move(path), expected_but_found(value, "a list such as 0-3,7"));
    }
}

size_t position_of(std::string_view value, Words known) {
    return static_cast<size_t>(std::find(known.begin(), known.end(), value) - known.begin());
}

void require_known(std::string path, std::string_view value, Words known, Problems& problems) {
    if (position_of(value, known) == known.size()) problems.add(std::move(path), expected_but_found(value, known));
}

void require_all_known(std::string_view path, const std::vector<std::string>& values, Words known, Problems& problems) {
    for (size_t i = 0; i < values.size(); ++i) require_known(element_path(path, i), values[i], known, problems);
}

}  // namespace pinfold
