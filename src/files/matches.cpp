// Component by component, like glob(3), which follows links, and so can be led in circles.
#include "files/matches.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kMostEntries = 1'000'000;  // that are looked at
constexpr size_t kMostMatches = 100'000;

class Search {
public:
    explicit Search(const RootFd& root) : root_(root) {}

    // What can be listed is searched; all else holds no match.
    Result<void> add_entries(const std::string& directory, const std::string& pattern,
                             std::vector<std::string>& found) {
        Result<UniqueFd> opened = root_.open(directory.empty() ? "/" : directory, O_RDONLY | O_DIRECTORY);
        if (!opened) return {};
        const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(opened->get()), ::closedir);
        if (!stream) return errno_error(concat("list ", quoted(directory)));
        opened->release();  // closedir closes it
        while (const dirent* entry = ::readdir(stream.get())) {
            if (++looked_at_ > kMostEntries || found.size() > kMostMatches)
                return Error{EMFILE, "too many names to find those that match", {}};
            const std::string_view name = entry->d_name;
            const bool matches = ::fnmatch(pattern.c_str(), entry->d_name, FNM_PERIOD) == 0;
            if (matches && name != "." && name != "..") found.push_back(concat(directory, '/', name));
        }
        return {};
    }

private:
    const RootFd& root_;
    uint64_t looked_at_ = 0;
};

}  // namespace

bool is_pattern(std::string_view path) { return path.find_first_of("*?[") != path.npos; }

Result<std::vector<std::string>> find_matches(const RootFd& root, std::string_view pattern) {
    Search search(root);
    std::vector<std::string> found = {""};
    const auto keep = [&](int flags) {
        std::erase_if(found, [&](const std::string& path) { return !root.open(path, flags); });
    };
    bool are_matches = false;
    for (const std::string_view part : split(pattern, '/')) {
        if (part.empty() || part == ".") continue;
        if (are_matches) keep(O_PATH | O_DIRECTORY | O_NOFOLLOW);
        are_matches = is_pattern(part);
        std::vector<std::string> longer;
        for (const std::string& base : found) {
            if (are_matches) TRY(search.add_entries(base, std::string(part), longer));
            else longer.push_back(concat(base, '/', part));
        }
        found = std::move(longer);
    }
    keep(O_PATH | O_NOFOLLOW);
    std::ranges::sort(found);
    return found;
}

}  // namespace pinfold
