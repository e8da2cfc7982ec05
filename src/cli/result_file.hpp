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

    bool is_open() const { return to_stdout_ || directory_; }
    bool was_written() const { return written_; }  // or it was tried

private:
    bool to_stdout_ = false;
    bool written_ = false;
    UniqueFd directory_;
    std::string name_;
};

// Writes it, and gives the exit code, or the error that it tells of.
Result<int> conclude(SandboxResult result, const CommandLine& line);

// What is printed and captured, but asked for by nobody, would be lost.
Result<void> check_capture(bool capture, const std::string& result);

// Bytes that may be printed: what --output-limit says, with a bound for what is captured; 0: it says nothing.
Result<uint64_t> output_limit(const std::string& text, bool capture);

}  // namespace pinfold
