// A log of a few events in a directory of its own, and its lines to play with.
#pragma once

#include <fcntl.h>

#include <fstream>
#include <string>
#include <vector>

#include "audit/log.hpp"
#include "audit/verify.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

namespace pinfold {

struct TestLog {
    testing::TempDir dir;
    std::string path = dir.file("log");

    explicit TestLog(int events = 5) {
        for (int i = 0; i < events; ++i) append(concat("c", i));
    }

    void append(const std::string& id) const {
        const Result<void> done = AuditLog::open(path).value().append({"start", id, "", {}});
        if (!done) FAIL(done.error().message);
    }
    std::string text() const { return read_file(path).value(); }
    void write(const std::string& text) const { std::ofstream(path) << text; }

    std::vector<std::string> lines() const {
        const std::string all = text();
        std::vector<std::string> found;
        for (const std::string_view line : split(all, '\n')) found.emplace_back(line);
        if (found.back().empty()) found.pop_back();
        return found;
    }
    void write_lines(const std::vector<std::string>& lines) const { write(join(lines, "\n") + "\n"); }

    AuditReport report() const { return verify_audit(path).value(); }
};

}  // namespace pinfold
