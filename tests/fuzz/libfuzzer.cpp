// libFuzzer's main program is this one: fuzzer --target=NAME ARGUMENTS
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/target.hpp"

using namespace pinfold::fuzz;

static const Target* target = nullptr;

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
    const std::string_view wanted = *argc > 1 ? (*argv)[1] : "";
    for (const Target& one : targets()) {
        if (wanted == "--targets") std::printf("%s\n", one.name.data());
        if (wanted == std::string("--target=").append(one.name)) target = &one;
    }
    if (target == nullptr) std::exit(wanted == "--targets" ? 0 : 2);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    target->try_input({reinterpret_cast<const char*>(data), size});
    return 0;
}
