// The schema of the specification against the parser: no property that it knows is silently ignored, and every word
// that it allows is accepted.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/strings.hpp"
#include "documents.hpp"
#include "spec/parse.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

bool for_other_platforms(std::string_view path) {
    for (const std::string_view other : other_platforms()) {
        if (path == other) return true;
    }
    return false;
}

// Walks the schema and builds a document that holds every property, once. A map gets one entry, named "*".
class SchemaWalk {
public:
    Json build() { return build(load("config-schema.json"), "config-schema.json", ""); }

    const std::set<std::string>& properties() const { return properties_; }
    const std::map<std::string, std::vector<std::string>>& words() const { return words_; }

private:
    const Json& load(const std::string& file) {
        const auto it = files_.find(file);
        if (it != files_.end()) return it->second;
        return files_.emplace(file, testing::document("tests/data/oci-schema/" + file)).first->second;
    }

    // "defs.json#/definitions/Env", or "#/..." in the same file.
    Json follow(const std::string& reference, const std::string& file, const std::string& path) {
        const size_t hash = reference.find('#');
        const std::string target = hash == 0 ? file : reference.substr(0, hash);
        const Json* schema = &load(target);
        for (const std::string_view part : split(std::string_view(reference).substr(hash + 2), '/')) {
            schema = schema->find(part);
            REQUIRE_MESSAGE(schema, reference);
        }
        return build(*schema, target, path);
    }

    void add_properties(Json::Object& object, const Json& schema, const std::string& file, const std::string& path) {
        for (const Json::Member& property : *schema.object()) {
            const std::string at = member_path(path, property.key);
            properties_.insert(at);
            if (for_other_platforms(at)) continue;
            object.push_back({property.key, build(property.value, file, at)});
        }
    }

    Json build_object(const Json& schema, const std::string& file, const std::string& path) {
        Json::Object object;
        if (const Json* properties = schema.find("properties")) add_properties(object, *properties, file, path);
        const Json* patterns = schema.find("patternProperties");
        const Json* entries = patterns ? &patterns->object()->front().value : schema.find("additionalProperties");
        if (entries) {
            properties_.insert(path + ".*");
            object.push_back({"*", build(*entries, file, path + ".*")});
        }
        return Json{std::move(object)};
    }

    Json build_all_of(const Json& parts, const std::string& file, const std::string& path) {
        Json::Object all;
        for (const Json& part : *parts.array()) {
            const Json built = build(part, file, path);
            all.insert(all.end(), built.object()->begin(), built.object()->end());
        }
        return Json{std::move(all)};
    }

    Json build_word(const Json& words, const std::string& path) {
        for (const Json& word : *words.array()) words_[path].push_back(*word.string());
        return (*words.array())[0];
    }

    Json build(const Json& schema, const std::string& file, const std::string& path) {
        if (const Json* reference = schema.find("$ref")) return follow(*reference->string(), file, path);
        if (const Json* parts = schema.find("allOf")) return build_all_of(*parts, file, path);
        if (const Json* choices = schema.find("anyOf")) return build((*choices->array())[0], file, path);
        if (const Json* words = schema.find("enum")) return build_word(*words, path);
        const std::string& type = *schema.find("type")->string();
        if (type == "object") return build_object(schema, file, path);
        if (type == "array") return Json{Json::Array{build(*schema.find("items"), file, path + "[]")}};
        if (type == "boolean") return Json{true};
        if (type == "integer") return Json{uint64_t{1}};
        // Device types are a pattern, "^[cbup]$"; every other string may be anything as far as reading goes.
        const Json* pattern = schema.find("pattern");
        return Json{std::string(pattern && *pattern->string() == "^[cbup]$" ? "c" : "x")};
    }

    std::map<std::string, Json> files_;
    std::set<std::string> properties_;
    std::map<std::string, std::vector<std::string>> words_;
};

bool is_below_or_at(std::string_view path, std::string_view top) {
    return path == top || (path.starts_with(top) && (path[top.size()] == '.' || path[top.size()] == '['));
}

bool is_listed(std::string_view path) {
    for (const Unsupported& entry : not_yet_supported()) {
        if (is_below_or_at(path, entry.path)) return true;
    }
    return false;
}

// The device rules' type is a free string in the schema; in the text it is a, b or c.
Json with_rule_type(const Json& document) {
    return testing::edited(document, {{"linux.resources.devices[0].type", R"("a")"}});
}

std::string with_first_elements(std::string path) {
    for (size_t at = path.find("[]"); at != path.npos; at = path.find("[]")) path.replace(at, 2, "[0]");
    return path;
}

}  // namespace

TEST_CASE("schema: every property is read, listed as not supported yet, or of another platform") {
    SchemaWalk walk;
    const Json document = with_rule_type(walk.build());
    REQUIRE(walk.properties().size() > 180);

    Problems problems;
    std::set<std::string> consumed;
    parse_spec(document, problems, &consumed);
    CHECK(testing::lines(problems) == std::vector<std::string>{});
    for (const std::string& path : walk.properties()) {
        CAPTURE(path);
        CHECK((consumed.contains(path) || is_listed(path) || for_other_platforms(path)));
    }
    for (const std::string& path : consumed) {
        CAPTURE(path);
        CHECK(walk.properties().contains(path));
    }
}

TEST_CASE("schema: everything that is listed exists") {
    SchemaWalk walk;
    walk.build();
    for (const Unsupported& entry : not_yet_supported()) {
        CAPTURE(entry.path);
        CHECK(walk.properties().contains(std::string(entry.path)));
        CHECK_FALSE(entry.why.empty());
    }
    for (const std::string_view path : other_platforms()) {
        CAPTURE(path);
        CHECK(walk.properties().contains(std::string(path)));
    }
}

TEST_CASE("schema: every word that it allows is accepted, and no other") {
    SchemaWalk walk;
    const Json document = with_rule_type(walk.build());
    REQUIRE(walk.words().size() >= 13);
    const auto says = [&](const std::string& path, const std::string& word) {
        const std::string at = with_first_elements(path);
        const std::string value = json_quoted(word);
        for (const std::string& line : testing::problems_of(testing::edited(document, {{at, value}}))) {
            if (line.starts_with(concat(at, ": found ", value))) return true;
        }
        return false;
    };
    for (const auto& entry : walk.words()) {
        const std::string& path = entry.first;
        CAPTURE(path);
        for (const std::string& word : entry.second) {
            CAPTURE(word);
            CHECK_FALSE(says(path, word));
        }
        CHECK(says(path, "no such word"));
    }
}
