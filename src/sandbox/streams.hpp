// A job's standard streams: always pipes of ours, or nothing. A descriptor of the caller's would lend the job its
// offset, its flags, and the right to truncate a file or to read a terminal.
#pragma once

#include <sys/types.h>

#include <optional>

#include "pinfold/result.hpp"
#include "process/payload_steps.hpp"
#include "sandbox/flow.hpp"
#include "sandbox/output.hpp"

namespace pinfold {

struct StreamWishes {
    int input = -1;              // -1: nothing to read
    bool capture = false;        // keep what is printed
    bool tee = false;            // and pass it on
    bool merge = false;          // of both streams make one
    uint64_t output_limit = 0;   // bytes; 0: none
    std::optional<uid_t> owner;  // on the host, of the pipes, so that the payload can open /dev/stdout
};

struct JobStreams {
    Output output;
    Streams streams;  // the payload's ends
    int input_from = -1;
    UniqueFd input_to;          // until it flows
    std::optional<Flow> input;  // from the caller

    // To the caller's streams; from here on they are read and written. To be called where a process can be started that
    // the payload does not see.
    Result<void> connect();
};

// Our standard input, unless it is a terminal: what is typed there is for whoever reads it next, and may be a secret.
int input_without_terminal();

Result<JobStreams> make_streams(const StreamWishes& wishes);

// Of a job that nobody stays with.
Result<Streams> null_streams();

}  // namespace pinfold
