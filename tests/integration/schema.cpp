// As much of JSON schema (draft 4) as the specification's schemas use; a word that is not known here fails the test.
#include "schema.hpp"

#include <map>
#include <regex>

#include "harness.hpp"
#include "support/source_root.hpp"

namespace pinfold::integration {

namespace {

fs::path schema_directory() { return testing::source_root() / "tests/data/oci-schema"; }

std::string member_of(std::string path, const std::string& name) { return (path += '.') += name; }

// A schema, and the file that its references without a file name belong to.
struct Place {
    const json& schema;
    std::string file;
};

class Validator {
public:
    std::vector<std::string> check(const json& document, const std::string& file) {
        check_value(document, {load(file), file}, "");
        return std::move(problems_);
    }

private:
    using Check = void (Validator::*)(const json& value, const Place& word, const std::string& at);

    const json& load(const std::string& file) {
        const auto known = files_.find(file);
        if (known != files_.end()) return known->second;
        return files_.emplace(file, json::parse(read_text(schema_directory() / file))).first->second;
    }

    void add(const std::string& at, const std::string& text) { problems_.push_back(at + ": " + text); }

    void check_value(const json& value, const Place& place, const std::string& at) {
        static const std::map<std::string, Check> kChecks = {{"$ref", &Validator::check_reference},
                                                             {"type", &Validator::check_type},
                                                             {"properties", &Validator::check_properties},
                                                             {"required", &Validator::check_required},
                                                             {"patternProperties", &Validator::check_patterns},
                                                             {"additionalProperties", &Validator::check_others},
                                                             {"items", &Validator::check_items},
                                                             {"minItems", &Validator::check_length},
                                                             {"enum", &Validator::check_words},
                                                             {"pattern", &Validator::check_pattern},
                                                             {"minimum", &Validator::check_minimum},
                                                             {"maximum", &Validator::check_maximum},
                                                             {"allOf", &Validator::check_all},
                                                             {"anyOf", &Validator::check_any},
                                                             {"description", nullptr},
                                                             {"$schema", nullptr}};
        for (const auto& [word, argument] : place.schema.items()) {
            const auto known = kChecks.find(word);
            if (known == kChecks.end()) FAIL("no such word in this validator: " << word);
            if (known->second) (this->*known->second)(value, {argument, place.file}, at);
        }
    }

    // "defs.json#/definitions/Env", or "#/..." in the same file.
    void check_reference(const json& value, const Place& reference, const std::string& at) {
        const auto text = reference.schema.get<std::string>();
        const size_t hash = text.find('#');
        const std::string file = hash == 0 ? reference.file : text.substr(0, hash);
        check_value(value, {load(file).at(json::json_pointer(text.substr(hash + 1))), file}, at);
    }

    void check_type(const json& value, const Place& type, const std::string& at) {
        const bool right = type.schema == "integer" ? value.is_number_integer() : type.schema == value.type_name();
        if (!right) add(at, "is " + std::string(value.type_name()) + ", not " + type.schema.dump());
    }

    void check_properties(const json& value, const Place& properties, const std::string& at) {
        if (!value.is_object()) return;
        for (const auto& [name, schema] : properties.schema.items()) {
            if (value.contains(name)) check_value(value[name], {schema, properties.file}, member_of(at, name));
        }
    }

    void check_required(const json& value, const Place& names, const std::string& at) {
        for (const json& name : names.schema) {
            if (!value.contains(name)) add(at, "has no " + name.get<std::string>());
        }
    }

    void check_patterns(const json& value, const Place& patterns, const std::string& at) {
        for (const auto& [pattern, schema] : patterns.schema.items()) {
            for (const auto& [name, member] : value.items()) {
                if (std::regex_search(name, std::regex(pattern)))
                    check_value(member, {schema, patterns.file}, member_of(at, name));
            }
        }
    }

    // Of maps without properties of their own: nowhere else is the word used.
    void check_others(const json& value, const Place& schema, const std::string& at) {
        for (const auto& [name, member] : value.items()) check_value(member, schema, member_of(at, name));
    }

    void check_items(const json& value, const Place& schema, const std::string& at) {
        if (!value.is_array()) return;
        for (size_t i = 0; i < value.size(); ++i) check_value(value[i], schema, at + "[" + std::to_string(i) + "]");
    }

    void check_length(const json& value, const Place& least, const std::string& at) {
        if (value.size() < least.schema.get<size_t>()) add(at, "has too few items");
    }

    void check_words(const json& value, const Place& words, const std::string& at) {
        if (std::find(words.schema.begin(), words.schema.end(), value) == words.schema.end())
            add(at, value.dump() + " is none of " + words.schema.dump());
    }

    void check_pattern(const json& value, const Place& pattern, const std::string& at) {
        if (!value.is_string()) return;
        if (!std::regex_search(value.get<std::string>(), std::regex(pattern.schema.get<std::string>())))
            add(at, value.dump() + " does not match " + pattern.schema.dump());
    }

    // As long double, which holds every 64-bit number: the library compares mixed signs by their bits.
    void check_minimum(const json& value, const Place& least, const std::string& at) {
        if (value.is_number() && value.get<long double>() < least.schema.get<long double>()) add(at, "is too small");
    }
    void check_maximum(const json& value, const Place& most, const std::string& at) {
        if (value.is_number() && value.get<long double>() > most.schema.get<long double>()) add(at, "is too large");
    }

    void check_all(const json& value, const Place& schemas, const std::string& at) {
        for (const json& schema : schemas.schema) check_value(value, {schema, schemas.file}, at);
    }

    void check_any(const json& value, const Place& schemas, const std::string& at) {
        for (const json& schema : schemas.schema) {
            Validator attempt;
            attempt.check_value(value, {schema, schemas.file}, at);
            if (attempt.problems_.empty()) return;
        }
        add(at, "fits none of the alternatives");
    }

    std::map<std::string, json> files_;
    std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> schema_problems(const json& document, const std::string& schema_file) {
    return Validator().check(document, schema_file);
}

}  // namespace pinfold::integration

using namespace pinfold::integration;

TEST_CASE("schema: the specification's good examples are valid, its bad ones are not") {
    const fs::path examples = schema_directory() / "examples";
    for (const std::string kind : {"good", "bad"}) {
        for (const auto& file : fs::directory_iterator(examples / kind)) {
            CAPTURE(file.path());
            const json document = json::parse(read_text(file.path()), nullptr, false);
            const bool valid = !document.is_discarded() && schema_problems(document, "config-schema.json").empty();
            CHECK(valid == (kind == "good"));
        }
    }
}
