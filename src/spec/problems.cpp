// What is wrong with a configuration: every problem with its JSON path, collected so that all are told at once.
#include "spec/problems.hpp"

#include <algorithm>

#include "base/strings.hpp"

namespace pinfold {

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

}  // namespace pinfold
