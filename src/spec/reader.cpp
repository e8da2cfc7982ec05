// Reader: the parts that do not depend on the type that is read.
#include "spec/reader.hpp"

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

}  // namespace pinfold
