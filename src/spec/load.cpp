// From a bundle to a configuration that is fit to be planned with.
#include "spec/load.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/strings.hpp"
#include "json/reader.hpp"
#include "spec/parse.hpp"
#include "spec/validate.hpp"

namespace pinfold {

// What the specification has and pinfold does not do yet.

namespace {

constexpr auto kUnsupported = std::to_array<Unsupported>({
    {"linux.intelRdt", "classes of service are not assigned"},
});

constexpr auto kOtherPlatforms = std::to_array<std::string_view>(
    {"freebsd", "solaris", "vm", "windows", "zos", "process.commandLine", "process.user.username"});

// An empty object among the members is in use: it stands for something that the map names.
bool in_use(const Json& json);

bool member_in_use(const Json::Member& member) { return member.value.object() || in_use(member.value); }

bool in_use(const Json& json) {
    switch (json.kind()) {
        case Json::Kind::null: return false;
        case Json::Kind::boolean: return *json.boolean();
        case Json::Kind::integer: return *json.integer() != 0;
        case Json::Kind::unsigned_integer: return *json.unsigned_integer() != 0;
        case Json::Kind::real: return *json.real() != 0;
        case Json::Kind::string: return !json.string()->empty();
        case Json::Kind::array: return !json.array()->empty();
        case Json::Kind::object: break;
    }
    return std::any_of(json.object()->begin(), json.object()->end(), member_in_use);
}

const Json* find_path(const Json& root, std::string_view path) {
    const Json* json = &root;
    for (const std::string_view key : split(path, '.')) {
        json = json->find(key);
        if (!json) return nullptr;
    }
    return json;
}

}  // namespace

std::span<const Unsupported> not_yet_supported() { return kUnsupported; }

bool is_supported(std::string_view path) {
    const auto covers = [path](const Unsupported& entry) {
        return path == entry.path || path.starts_with(concat(entry.path, '.'));
    };
    return std::none_of(kUnsupported.begin(), kUnsupported.end(), covers);
}

std::span<const std::string_view> other_platforms() { return kOtherPlatforms; }

void refuse_unsupported(const Json& root, Problems& problems, std::string_view at) {
    const std::string prefix = at.empty() ? std::string() : concat(at, '.');
    for (const Unsupported& entry : kUnsupported) {
        if (!entry.path.starts_with(prefix)) continue;
        const std::string_view path = entry.path.substr(prefix.size());
        const Json* json = find_path(root, path);
        if (json && in_use(*json)) problems.add(std::string(path), concat("not supported yet: ", entry.why));
    }
}

Result<std::string> read_config(const std::string& path) {
    Result<std::string> text = read_document(path);
    if (text || text.error().code != ENOENT) return text;
    return std::move(text).error().with_hint("run in a bundle directory, or name one with --bundle");
}

Result<Spec> parse_config(std::string_view text, const std::string& name, const std::string& bundle) {
    Json root = TRY(parse_json(text, name));
    Problems problems, unsupported;
    refuse_unsupported(root, unsupported);
    Spec spec = parse_spec(std::move(root), problems);
    validate_spec(spec, problems);
    validate_bundle(spec, bundle, problems);
    for (const Problem& item : unsupported.items()) problems.add(item.path, item.message);
    if (!problems.empty()) return to_error(problems, name);
    return spec;
}

Result<Spec> parse_checked_config(std::string_view text) {
    Json root = TRY(parse_json(text, "the container's config.json"));
    Problems problems;
    Spec spec = parse_spec(std::move(root), problems);
    if (!problems.empty()) return to_error(problems, "the container's config.json");
    return spec;
}

Result<Process> load_process(const std::string& path) {
    const std::string text = TRY(read_document(path));
    const Json root = TRY(parse_json(text, path));
    Problems problems;
    Process process = parse_process(root, problems);
    validate_process(process, "", problems);
    refuse_unsupported(root, problems, "process");
    if (!problems.empty()) return to_error(problems, path);
    return process;
}

}  // namespace pinfold
