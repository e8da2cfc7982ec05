// The result of a job on its way to whoever asked for it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "pinfold/result.hpp"
#include "pinfold/sandbox.hpp"

namespace pinfold {

using TextSink = std::function<Result<void>(std::string_view)>;

// What to_json() says, in pieces: a byte of output may take six in JSON, and there may be very many of them.
Result<void> write_json(const SandboxResult& result, const TextSink& sink);

// Between the library and its worker: the output as it is, and the rest as JSON.
std::string to_wire(SandboxResult result);
Result<SandboxResult> from_wire(std::string_view wire);

}  // namespace pinfold
