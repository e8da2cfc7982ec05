// From a bundle to a configuration that is fit to be planned with.
#include "spec/load.hpp"

#include <cerrno>

#include "base/fs.hpp"
#include "spec/json.hpp"
#include "spec/parse.hpp"
#include "spec/unsupported.hpp"
#include "spec/validate.hpp"

namespace pinfold {

namespace {

Result<std::string> read_config(const std::string& path) {
    Result<std::string> text = read_file(path);
    if (text || text.error().code != ENOENT) return text;
    return std::move(text).error().with_hint("run in a bundle directory, or name one with --bundle");
}

}  // namespace

Result<Spec> load_spec(const std::string& bundle, const std::string& config_path) {
    const std::string text = TRY(read_config(config_path));
    const Json root = TRY(parse_json(text, config_path));
    Problems problems;
    Spec spec = parse_spec(root, problems);
    validate_spec(spec, problems);
    validate_bundle(spec, bundle, problems);
    refuse_unsupported(root, problems);
    if (!problems.empty()) return to_error(problems, config_path);
    return spec;
}

}  // namespace pinfold
