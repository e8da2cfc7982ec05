// For attacks: what must not be reached on the host, links that lead there, and names that never stand still.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness.hpp"
#include "support/tried.hpp"

namespace pinfold::integration {

// A directory of the host with one file, open to everyone. No attack may read, change or add anything there.
class Vault {
public:
    explicit Vault(const Bundle& bundle);

    static constexpr const char* kText = "the host's own";

    const fs::path& path() const { return path_; }
    fs::path secret() const { return path_ / "secret"; }
    // Names, text, owner and mode are what they were.
    bool untouched() const;
    bool is_told_in(const Outcome& outcome) const;

private:
    std::string description() const;

    fs::path path_;
    std::string before_;
};

// Ways to write a symbolic link that leads to this place of the host for whoever follows it there: straight, and by
// climbing out of the directory that it lies in.
std::vector<std::string> links_to(const fs::path& place);

// What a directory of an image can be instead: links to other directories of the image, to the host, to nowhere, to
// itself. Two of them need "hop" beside them, which leads to "data".
std::vector<std::string> links_for(const std::string& name, const Vault& vault);

// Puts a link where there is a directory, a file, a link or nothing.
void plant(const fs::path& place, const std::string& target);

// Exchanges two names again and again, in a process of its own.
class Exchanger {
public:
    Exchanger(const fs::path& one, const fs::path& other);
    ~Exchanger();
    Exchanger(const Exchanger&) = delete;
    Exchanger& operator=(const Exchanger&) = delete;

private:
    pid_t pid_;
};

// The rounds of a race: so many, but no more than fit into a few seconds, and a handful on an emulated machine.
class Rounds {
public:
    explicit Rounds(int most);

    bool go_on();

private:
    int left_;
    int taken_ = 0;
    std::chrono::steady_clock::time_point end_;
};

// All rows of a table; on an emulated machine, where each takes a second, some of them from all over it.
template <class Row>
std::vector<Row> sampled(const std::vector<Row>& rows) {
    constexpr size_t kStep = 5;  // no divisor of the tables' own periods
    if (!testing::slow_machine()) return rows;
    std::vector<Row> some;
    for (size_t i = 0; i < rows.size(); i += kStep) some.push_back(rows[i]);
    return some;
}

// Not started, with an error of one sentence that has these words.
bool is_refused(const Outcome& outcome, const std::string& words);
bool is_refused(const Ended& ended, const std::string& words);

// Whether all that is mounted in the container was made for it, or lies in the directory of this test.
bool mounts_only_own(const json& report, const Bundle& bundle);

}  // namespace pinfold::integration
