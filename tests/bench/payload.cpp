// What every variant of the benchmark starts: the least that a container can run. It has no C library, whose start
// alone costs some 0.4 ms where the processor's CPUID instruction traps (virtual machines), for every variant alike.
// Built with PINFOLD_WAITS it stays until it is killed: somewhere to exec into.
#include <asm/unistd.h>

#if defined(PINFOLD_WAITS)
constexpr long kCall = __NR_ppoll;  // of no descriptor and without a timeout
#else
constexpr long kCall = __NR_exit_group;
#endif

extern "C" [[noreturn]] void _start() {
#if defined(__x86_64__)
    register long mask asm("r10") = 0;
    asm volatile("syscall" : : "a"(kCall), "D"(0), "S"(0), "d"(0), "r"(mask) : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long first asm("x0") = 0;
    register long second asm("x1") = 0;
    register long third asm("x2") = 0;
    register long fourth asm("x3") = 0;
    register long number asm("x8") = kCall;
    asm volatile("svc 0" : : "r"(first), "r"(second), "r"(third), "r"(fourth), "r"(number) : "memory");
#else
#error "say here how this processor makes a system call"
#endif
    __builtin_unreachable();
}
