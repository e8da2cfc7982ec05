// Documents for the tests: files of tests/data, and a good configuration with a few edits.
#include "documents.hpp"

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "json/json.hpp"
#include "spec/parse.hpp"
#include "spec/validate.hpp"
#include "support/testing.hpp"

namespace pinfold::testing {

namespace {

Json& member(Json& parent, std::string_view key) {
    if (!parent.object()) parent.value = Json::Object();
    auto& members = std::get<Json::Object>(parent.value);
    for (Json::Member& candidate : members) {
        if (candidate.key == key) return candidate.value;
    }
    return members.emplace_back(Json::Member{std::string(key), {}}).value;
}

Json& element(Json& parent, size_t index) {
    if (!parent.array()) parent.value = Json::Array();
    auto& items = std::get<Json::Array>(parent.value);
    if (items.size() <= index) items.resize(index + 1);
    return items[index];
}

// "namespaces[2]" under its parent.
Json& step(Json& parent, std::string_view part) {
    const size_t bracket = part.find('[');
    Json& named = member(parent, part.substr(0, bracket));
    if (bracket == part.npos) return named;
    return element(named, parse_number<size_t>(part.substr(bracket + 1, part.size() - bracket - 2)).value());
}

void remove(Json& parent, std::string_view key) {
    std::erase_if(std::get<Json::Object>(parent.value), [&](const Json::Member& m) { return m.key == key; });
}

}  // namespace

Json document(const std::string& path_in_project) {
    const std::string path = source_root() / path_in_project;
    const Result<std::string> text = read_file(path);
    REQUIRE_MESSAGE(text, text.error().message);
    Result<Json> root = parse_json(*text, path);
    REQUIRE_MESSAGE(root, root.error().message);
    return std::move(root).value();
}

Json json(std::string_view text) {
    Result<Json> root = parse_json(text, "text");
    REQUIRE_MESSAGE(root, root.error().message);
    return std::move(root).value();
}

Json good_config() {
    return json(R"({
        "ociVersion": "1.0.2",
        "root": {"path": "rootfs"},
        "process": {"cwd": "/", "args": ["sh"], "env": ["PATH=/bin"]},
        "linux": {"namespaces": [{"type": "mount"}, {"type": "pid"}, {"type": "network"}, {"type": "ipc"},
                                 {"type": "uts"}]}
    })");
}

Json edited(Json root, const std::vector<Edit>& edits) {
    for (const Edit& edit : edits) {
        std::vector<std::string_view> parts = split(edit.path, '.');
        const std::string_view last = parts.back();
        parts.pop_back();
        Json* parent = &root;
        for (const std::string_view part : parts) parent = &step(*parent, part);
        if (edit.value.empty()) remove(*parent, last);
        else step(*parent, last) = json(edit.value);
    }
    return root;
}

std::vector<std::string> lines(const Problems& problems) {
    std::vector<std::string> out;
    for (const Problem& problem : problems.items()) out.push_back(concat(problem.path, ": ", problem.message));
    return out;
}

std::vector<std::string> problems_of(const Json& config) {
    Problems problems;
    validate_spec(parse_spec(config, problems), problems);
    return lines(problems);
}

}  // namespace pinfold::testing
