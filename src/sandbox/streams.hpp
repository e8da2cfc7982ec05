// A job's standard streams: pipes of ours where its output is kept or limited, else our own.
#pragma once

#include <sys/types.h>

#include <optional>

#include "pinfold/result.hpp"
#include "process/payload.hpp"
#include "sandbox/output.hpp"

namespace pinfold {

struct StreamWishes {
    int input = -1;              // -1: nothing to read
    bool capture = false;        // keep what is printed
    uint64_t output_limit = 0;   // bytes; 0: none
    std::optional<uid_t> owner;  // on the host, of the pipes, so that the payload can open /dev/stdout
};

struct JobStreams {
    std::optional<Output> output;
    Streams streams;
};

Result<JobStreams> make_streams(const StreamWishes& wishes);

}  // namespace pinfold
