// From a bundle to a configuration that is fit to be planned with.
#include "spec/load.hpp"

#include <cerrno>

#include "json/reader.hpp"
#include "spec/parse.hpp"
#include "spec/unsupported.hpp"
#include "spec/validate.hpp"

namespace pinfold {

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
