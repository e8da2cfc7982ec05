// What attacks have in common.
#include "attacks.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

namespace pinfold::integration {

namespace {

constexpr int kFewRounds = 5;
constexpr std::chrono::seconds kTimeOfRounds(2);

bool has_one_error(int status, const std::string& err, const std::string& words) {
    const bool one = err.starts_with("pinfold: ") && err.find("pinfold: ", 1) == std::string::npos;
    return status != 0 && one && err.find(words) != std::string::npos;
}

bool is_own(const json& mount, const Bundle& bundle) {
    const std::string root = mount["root"];
    if (mount["source"] == "playground") return root.starts_with("/" + bundle.id() + "/");
    static const std::vector<std::string> kinds = {"proc", "sysfs", "tmpfs", "devpts", "mqueue"};
    const bool made = std::ranges::find(kinds, mount["type"].get<std::string>()) != kinds.end();
    return (made && root == "/") || root.starts_with("/null") || mount["type"] == "proc";
}

}  // namespace

Vault::Vault(const Bundle& bundle) : path_(bundle.host() / "vault") {
    fs::create_directories(path_);
    write_text(secret(), kText);
    fs::permissions(bundle.host(), fs::perms(0777));
    fs::permissions(path_, fs::perms(0777));
    fs::permissions(secret(), fs::perms(0666));
    before_ = description();
}

std::string Vault::description() const {
    std::string out;
    for (const auto& entry : fs::recursive_directory_iterator(path_)) {
        struct stat info {};
        CHECK(::lstat(entry.path().c_str(), &info) == 0);
        out += entry.path().string() + " " + std::to_string(info.st_mode) + " " + std::to_string(info.st_uid) + "\n";
    }
    return out + read_text(secret());
}

bool Vault::untouched() const { return description() == before_; }

bool Vault::is_told_in(const Outcome& outcome) const {
    return (outcome.out + outcome.err).find(kText) != std::string::npos;
}

std::vector<std::string> links_to(const fs::path& place) {
    return {place.string(), "../../../../../../../../../../../.." + place.string(), "//." + place.string()};
}

std::vector<std::string> links_for(const std::string& name, const Vault& vault) {
    std::vector<std::string> links = {"/data",    "data",        "./data/../data", "../../data",      "/",       ".",
                                      "..",       "hop",         "/hop",           "/nowhere/at/all", "nowhere", name,
                                      "/" + name, "/etc/../data"};
    for (const std::string& link : links_to(vault.path())) links.push_back(link);
    return links;
}

void plant(const fs::path& place, const std::string& target) {
    fs::remove_all(place);
    fs::create_directories(place.parent_path());
    fs::create_symlink(target, place);
}

Exchanger::Exchanger(const fs::path& one, const fs::path& other) : pid_(::fork()) {
    if (pid_ != 0) return;
    // Thousands of times a second. Without any pause the kernel's one lock of all renames would be held nearly always,
    // and what the others do would take seconds.
    for (const timespec pause{0, 10'000};; ::nanosleep(&pause, nullptr))
        ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
}

Exchanger::~Exchanger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

Rounds::Rounds(int most)
    : left_(testing::slow_machine() ? kFewRounds : most), end_(std::chrono::steady_clock::now() + kTimeOfRounds) {}

bool Rounds::go_on() {
    if (left_ == 0) return false;
    if (taken_ >= kFewRounds && std::chrono::steady_clock::now() > end_) return false;
    --left_;
    ++taken_;
    return true;
}

bool is_refused(const Outcome& outcome, const std::string& words) {
    return has_one_error(outcome.status, outcome.err, words);
}

bool is_refused(const Ended& ended, const std::string& words) { return has_one_error(ended.status, ended.err, words); }

bool mounts_only_own(const json& report, const Bundle& bundle) {
    return std::ranges::all_of(report["mounts"], [&](const json& mount) { return is_own(mount, bundle); });
}

}  // namespace pinfold::integration
