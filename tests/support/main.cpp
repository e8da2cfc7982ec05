// The main program of every test executable: one line of progress per test case, the counts at the end.
// PINFOLD_RESULTS=FILE appends "passed failed skipped" there, for the sum that ./dev test prints.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/testing.hpp"
#include "support/tried.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>

namespace pinfold::testing {

namespace {

bool switched_on(const char* variable) {
    const char* value = std::getenv(variable);
    return value != nullptr && std::string_view(value) == "1";
}

std::string& skip_note() {
    static std::string note;
    return note;
}

class ProgressReporter : public doctest::IReporter {
public:
    explicit ProgressReporter(const doctest::ContextOptions& /*options*/) {}

    void test_case_start(const doctest::TestCaseData& test) override {
        test_ = &test;
        details_.clear();
        skip_note().clear();
    }

    void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
        // A child that a test forked and that died of a signal arrives here too; only the parent reports.
        if (::getpid() != owner_) return;
        const int ms = static_cast<int>(stats.seconds * 1000);
        if (stats.failure_flags != 0) {
            ++failed_;
            std::printf("FAIL %6d ms  %s\n%s%s", ms, test_->m_name, details_.c_str(), reason(stats).c_str());
        } else if (!skip_note().empty()) {
            ++skipped_;
            std::printf("skip            %s: %s\n", test_->m_name, skip_note().c_str());
        } else {
            ++passed_;
            std::printf("ok   %6d ms  %s\n", ms, test_->m_name);
        }
        std::fflush(stdout);
    }

    void test_run_end(const doctest::TestRunStats& /*stats*/) override {
        if (::getpid() != owner_) return;
        report_tried();
        std::printf("%d passed, %d failed, %d skipped\n", passed_, failed_, skipped_);
        std::fflush(stdout);
        append_counts();
    }

    void log_assert(const doctest::AssertData& data) override {
        if (!data.m_failed) return;
        std::ostringstream text;
        text << place(data.m_file, data.m_line) << doctest::assertString(data.m_at) << "( " << data.m_expr << " )";
        if (data.m_threw) text << " threw " << data.m_exception.c_str();
        else if (data.m_decomp.size() > 0) text << "\n        values: " << data.m_decomp.c_str();
        add_detail(text.str());
    }

    void log_message(const doctest::MessageData& data) override {
        add_detail(place(data.m_file, data.m_line) + data.m_string.c_str());
    }

    void test_case_exception(const doctest::TestCaseException& error) override {
        add_detail(place(test_->m_file.c_str(), static_cast<int>(test_->m_line)) +
                   (error.is_crash ? "died of a signal: " : "threw: ") + error.error_string.c_str());
    }

    void subcase_start(const doctest::SubcaseSignature& subcase) override { subcase_ = subcase.m_name.c_str(); }
    void subcase_end() override { subcase_.clear(); }

    // Asked for by doctest's --help, --list-test-cases and the like.
    void report_query(const doctest::QueryData& query) override {
        for (unsigned i = 0; i < query.num_data; ++i) std::printf("%s\n", query.data[i]->m_name);
    }

    void test_run_start() override {}
    void test_case_reenter(const doctest::TestCaseData& /*test*/) override {}
    void test_case_skipped(const doctest::TestCaseData& /*test*/) override {}

private:
    // The compiler was called in the build directory; the reader stands at the top of the project.
    static std::string place(std::string_view file, int line) {
        while (file.starts_with("../")) file.remove_prefix(3);
        return "    " + std::string(file) + ":" + std::to_string(line) + ": ";
    }

    static std::string reason(const doctest::CurrentTestCaseStats& stats) {
        if ((stats.failure_flags & doctest::TestCaseFailureReason::Timeout) != 0) return "    took too long\n";
        return {};
    }

    void add_detail(const std::string& text) {
        const std::lock_guard<std::mutex> lock(mutex_);
        details_ += text + "\n";
        if (!subcase_.empty()) details_ += "        in: " + subcase_ + "\n";
        for (int i = 0; i < get_num_active_contexts(); ++i) {
            std::ostringstream context;
            get_active_contexts()[i]->stringify(&context);
            details_ += "        with: " + context.str() + "\n";
        }
    }

    void append_counts() const {
        const char* path = std::getenv("PINFOLD_RESULTS");
        if (path == nullptr) return;
        const int fd = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0 || ::dprintf(fd, "%d %d %d\n", passed_, failed_, skipped_) < 0) std::perror(path);
        if (fd >= 0) ::close(fd);
    }

    const pid_t owner_ = ::getpid();
    const doctest::TestCaseData* test_ = nullptr;
    std::mutex mutex_;  // checks may be made by several threads
    std::string details_;
    std::string subcase_;
    int passed_ = 0;
    int failed_ = 0;
    int skipped_ = 0;
};

}  // namespace

bool must_work() { return switched_on("PINFOLD_MUST_WORK"); }
bool slow_machine() { return switched_on("PINFOLD_SLOW"); }
bool sanitised() { return switched_on("PINFOLD_SANITISED"); }
void record_skip(const std::string& reason) { skip_note() = reason; }

}  // namespace pinfold::testing

REGISTER_REPORTER("progress", 0, pinfold::testing::ProgressReporter);

int main(int argc, char** argv) {
    doctest::Context context;
    context.setOption("reporters", "progress");
    context.applyCommandLine(argc, argv);
    return context.run();
}
