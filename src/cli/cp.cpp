// pinfold cp: files into a container and out of it.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/process.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cli/begin.hpp"
#include "cli/verbs.hpp"
#include "files/copy.hpp"
#include "files/receive_tree.hpp"
#include "policy/path_rules.hpp"
#include "policy/policy.hpp"
#include "sandbox/kept_files.hpp"

namespace pinfold {

namespace {

Result<CopyLimits> limits_of(const CpOptions& options) {
    const std::optional<int64_t> bytes = parse_size(options.max_size);
    if (!bytes) {
        return plain_error(
            concat("--max-size: found ", quoted(options.max_size), ", allowed: bytes, or a size as in 100M"));
    }
    return CopyLimits{static_cast<uint64_t>(*bytes), options.max_files, options.outward_links, true};
}

Result<InsideOf> find_container(const PathInside& place, const CommandLine& line) {
    if (place.path.empty()) return plain_error(concat(quoted(place.id + ":"), " names no path in the container"));
    const Policies policies = for_sandboxes(line.gate->policies(), line.global.root, line.global.audit);
    return files_of(line.global.root, place.id, place.path, policies);
}

// What comes from a container must not become the state of one, which names programs for the host to run.
Result<void> keep_from_states(const std::string& target, const std::string& source, const std::string& state_root) {
    std::vector<std::string> roots = default_state_roots();
    roots.push_back(state_root);
    struct stat info {};
    const bool into = ::stat(target.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    const std::string entry = into ? concat(target, '/', last_name(source)) : target;
    return check_apart_from_states({places_on_the_way(entry).back()}, roots);
}

Result<CopySummary> copy(const CpOptions& options, const CommandLine& line) {
    const std::optional<PathInside> from = inside_part(options.source);
    const std::optional<PathInside> to = inside_part(options.target);
    if (from.has_value() == to.has_value()) {
        return plain_error("one of source and target must be ID:PATH, the other a path on the host")
            .with_hint("a path with a colon in its name is written ./a:b");
    }
    const CopyLimits limits = TRY(limits_of(options));
    const InsideOf container = TRY(find_container(from ? *from : *to, line));
    if (from && options.target == "-" && standard_output_was_closed())
        return errno_error(EBADF, "write to standard output");
    if (from && options.target == "-") return stream_out(container, from->path, STDOUT_FILENO, limits);
    if (from) TRY(keep_from_states(options.target, from->path, line.global.root));
    if (from) return copy_out(container, from->path, options.target, limits);
    if (options.source == "-") return stream_in(container, STDIN_FILENO, to->path, limits);
    return copy_in(container, options.source, to->path, limits);
}

}  // namespace

// "web:/etc/hosts". What has a slash before its first colon is a path on the host.
std::optional<PathInside> inside_part(const std::string& argument) {
    const size_t colon = argument.find(':');
    if (colon == std::string::npos || argument.find('/') < colon) return std::nullopt;
    return PathInside{argument.substr(0, colon), argument.substr(colon + 1)};
}

Result<int> verb_cp(const CpOptions& options, const CommandLine& line) {
    const std::optional<PathInside> from = inside_part(options.source);
    const std::optional<PathInside> to = inside_part(options.target);
    const AuditEvent event{"copy",
                           from ? from->id
                           : to ? to->id
                                : "",
                           "",
                           {{"source", json_quoted(options.source)}, {"target", json_quoted(options.target)}}};
    const auto copy_it = [&]() -> Result<int> {
        const CopySummary copied = TRY(copy(options, line));
        log_debug(concat("copied ", copied.files, " files, ", copied.bytes, " bytes"));
        return 0;
    };
    return audited(line, event, copy_it, Signals::left_alone);
}

}  // namespace pinfold
