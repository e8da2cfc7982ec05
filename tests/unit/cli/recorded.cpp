// Verbs that remember what the command line has handed them. Those that a test needs as they are are linked: list, ps
// and cp.
#include "recorded.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <iostream>

#include "base/fs.hpp"
#include "cli/parse_arguments.hpp"
#include "cli/verbs.hpp"
#include "support/testing.hpp"

namespace pinfold {

using testing::recorded;

namespace {

template <class Options>
Result<int> record(const Options& options) {
    recorded<Options>() = options;
    return 0;
}

}  // namespace

Result<int> verb_create(const RunOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_run(const RunOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_start(const std::string& id, const CommandLine&) { return record(id); }
Result<int> verb_exec(const ExecOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_kill(const KillOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_delete(const DeleteOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_state(const std::string& id, const CommandLine&) { return record(id); }
Result<int> verb_pause(const std::string& id, const CommandLine&) { return record(id); }
Result<int> verb_resume(const std::string& id, const CommandLine&) { return record(id); }
Result<int> verb_update(const UpdateOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_events(const EventsOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_spec(const SpecOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_features() { return 0; }
Result<int> verb_audit_show(const AuditOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_audit_verify(const AuditOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_logs(const LogsOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_wait(const WaitOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_stop(const StopOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_prune(const PruneOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_sandbox(const SandboxOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_template_list(const TemplateListOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_template_show(const TemplateShowOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_template_add(const TemplateAddOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_seccomp_show(const SeccompShowOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_seccomp_diff(const SeccompDiffOptions& options, const CommandLine&) { return record(options); }
Result<int> verb_seccomp_learn(const SeccompLearnOptions& options, const CommandLine&) { return record(options); }

namespace testing {

Parsed::Parsed(std::vector<std::string> words) : words_(std::move(words)) {
    words_.insert(words_.begin(), "pinfold");
    for (std::string& word : words_) argv_.push_back(word.data());
    argv_.push_back(nullptr);
    std::ostringstream to_err;
    std::streambuf* const before = std::cerr.rdbuf(to_err.rdbuf());
    // What is printed goes past the streams of the library.
    const UniqueFd standard_output(::dup(STDOUT_FILENO)), file(::memfd_create("output", MFD_CLOEXEC));
    std::cout.flush();
    ::dup2(file.get(), STDOUT_FILENO);
    exit_code = parse_arguments(static_cast<int>(words_.size()), argv_.data(), line);
    ::dup2(standard_output.get(), STDOUT_FILENO);
    std::cerr.rdbuf(before);
    ::lseek(file.get(), 0, SEEK_SET);
    out = std::move(read_all(file.get(), "the output")).value();
    err = to_err.str();
}

Error Parsed::mistake() const {
    REQUIRE_FALSE(exit_code);
    const Result<int> called = line.verb.call(line);
    return called ? plain_error("nothing is wrong") : called.error();
}

void Parsed::call() const {
    REQUIRE_MESSAGE(!exit_code, err);
    const Result<int> called = line.verb.call(line);
    REQUIRE(called);
}

}  // namespace testing

}  // namespace pinfold
