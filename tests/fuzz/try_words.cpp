// Single words of the command line and of documents: sizes, times, ids, lists of numbers, and texts that are quoted.
#include <algorithm>

#include "base/base64.hpp"
#include "base/strings.hpp"
#include "base/units.hpp"
#include "cgroup/control_files.hpp"
#include "cgroup/plan.hpp"
#include "cgroup/systemd.hpp"
#include "fuzz/target.hpp"
#include "json/json.hpp"
#include "state/store.hpp"

namespace pinfold::fuzz {

namespace {

void check_id(const std::string& id) {
    const Result<void> checked = check_container_id(id);
    if (!checked) return check_refusal(checked.error());
    must_hold(id.find_first_of(std::string_view("/\0", 2)) == id.npos, "an id is the name of a file");
    must_hold(id != "." && id != "..", "an id is the name of no directory above");
}

void check_cgroup_path(std::string_view text) {
    const Result<std::string> path = clean_cgroup_path(text);
    if (!path) return check_refusal(path.error());
    must_hold(path->starts_with('/'), "a group lies below the top");
    const std::vector<std::string_view> names = split(*path, '/');
    must_hold(std::ranges::find(names, "..") == names.end(), "a group does not lie above the top");
}

void check_quotes(std::string_view text) {
    const Result<Json> read = parse_json(json_quoted(text), "quoted");
    must_hold(read && read->string(), "a quoted text is JSON");
    must_hold(from_base64(to_base64(text)) == text, "base64 has a way back");
    must_hold(std::ranges::all_of(quoted(text), [](char c) { return static_cast<unsigned char>(c) >= 0x20; }),
              "a quoted text can be printed");
}

}  // namespace

void try_words(std::string_view input) {
    const std::string text(input);
    must_hold(parse_size(text).value_or(0) >= 0, "no size is negative");
    must_hold(parse_duration(text).value_or(std::chrono::nanoseconds(0)).count() >= 0, "no time is negative");
    must_hold(parse_index_list(text).value_or(std::vector<unsigned long>()).size() <= 1024, "a mask stays small");
    from_base64(text);
    check_id(text);
    check_cgroup_path(text);
    check_quotes(text);
    const Result<ScopeName> scope = parse_scope_name(text, "id", {});
    if (!scope) check_refusal(scope.error());
}

}  // namespace pinfold::fuzz
