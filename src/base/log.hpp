// The one logger: --log, --log-format, --debug. Errors also reach standard error, as callers expect.
#pragma once

#include <string>
#include <string_view>

#include "pinfold/result.hpp"

namespace pinfold {

struct LogOptions {
    bool debug = false;
    std::string file;  // empty: standard error
    bool json = false;
};

Result<void> open_log(const LogOptions& options);

// For a process whose standard error is no longer ours to write to. Its descriptors may be closed already.
void stop_logging();

// Ask before building an expensive message.
bool debug_enabled();

void log_debug(std::string_view message);
void log_warning(std::string_view message);

// "pinfold: message" on standard error, whatever --log says: for whoever looks on.
void log_notice(std::string_view message);

// "pinfold: message", and "hint: ..." on a line of its own.
void log_error(const Error& error);

}  // namespace pinfold
