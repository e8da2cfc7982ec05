// The result of a job, to where its caller wants it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"
#include "pinfold/unique_fd.hpp"
#include "sandbox/result_json.hpp"

namespace pinfold {

struct CommandLine;

// Opened before the job can change what its name leads to, and refused then where it could not be written.
class ResultFile {
public:
    // Empty: nobody wants it. "-": standard output. Errors name the option that the path is from.
    static Result<ResultFile> open(const std::string& path, std::string_view option = "--result");

    // Whole or not at all, and in the place of a link, not through it.
    Result<void> write(const std::string& text);
    // The same in the pieces that `tell` hands to the sink.
    Result<void> write(const std::function<Result<void>(const TextSink&)>& tell);

    // Of an earlier job; whoever reads it would take it for this one's.
    void remove_earlier() const;

    bool is_open() const { return to_stdout_ || directory_; }
    bool was_written() const { return written_; }  // or it was tried

private:
    bool to_stdout_ = false;
    bool written_ = false;
    UniqueFd directory_;
    std::string name_;
};

// Before anything is done that could fail, or be killed: no end of this job can leave the result of another one. With
// the rights of who called, where they are borrowed ones: what a policy says is not known yet.
void remove_earlier_result(const std::string& path);

// Writes it, says on a terminal, or where it is wanted, what stopped the job, and gives the exit code, or the error
// that the result tells of.
Result<int> conclude(SandboxResult result, const CommandLine& line, bool verbose);

// What is printed and captured, but asked for by nobody, would be lost. What is printed as well must not be mixed with
// the result.
Result<void> check_capture(bool capture, bool tee, const std::string& result);

// A receipt is in the result alone.
Result<void> check_receipt(bool receipt, const std::string& result);

// Bytes that may be printed: what --output-limit says, with a bound for what is captured; 0: it says nothing.
Result<uint64_t> output_limit(const std::string& text, bool capture);

}  // namespace pinfold
