// The last program before the payload: an ELF file of two segments, its instructions and its list of system calls.
#include "process/trampoline.hpp"

#include <elf.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "process/payload_steps.hpp"
#include "process/spawn.hpp"

namespace pinfold {

namespace {

using Call = TrampolineCall;

// The last one is execve.
struct CallList {
    static constexpr size_t kMost = TrampolineImage::kMostCalls;
    uint64_t first;  // the address of the one to begin with
    Call calls[kMost];
};

// Multiples of the largest page that a kernel has. The program is not moved: its addresses are known beforehand.
constexpr uint64_t kCode = 0x400000, kData = 0x500000, kDataOffset = 0x10000;
constexpr size_t kRoomForWords = 0x8000;  // the list, its packets, and the path of the program

constexpr size_t kExec = offsetof(CallList, calls) + (CallList::kMost - 1) * sizeof(Call) + offsetof(Call, arguments);

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#define PINFOLD_TRAMPOLINE                                                                          \
    "mov (%%rsp), %%rcx\n" /* what the kernel left on the stack: argc, argv, null, envp, null */    \
    "lea 8(%%rsp), %%rax\n"                                                                         \
    "mov %%rax, %c[argv]\n" /* the second argument of execve */                                     \
    "lea 16(%%rsp, %%rcx, 8), %%rax\n"                                                              \
    "mov %%rax, %c[envp]\n"  /* the third one */                                                    \
    "mov %c[first], %%rbx\n" /* rbx: the call */                                                    \
    "1: mov (%%rbx), %%rax\n"                                                                       \
    "mov 8(%%rbx), %%rdi\n"                                                                         \
    "mov 16(%%rbx), %%rsi\n"                                                                        \
    "mov 24(%%rbx), %%rdx\n"                                                                        \
    "mov 32(%%rbx), %%r10\n"                                                                        \
    "mov 40(%%rbx), %%r8\n"                                                                         \
    "mov 48(%%rbx), %%r9\n"                                                                         \
    "syscall\n"                                                                                     \
    "cmp $-4, %%rax\n" /* EINTR: once more, if it was the wait; whoever else says so is a filter */ \
    "jne 3f\n"                                                                                      \
    "cmpl %[wait], (%%rbx)\n"                                                                       \
    "je 1b\n"                                                                                       \
    "3: cmp $-4096, %%rax\n" /* -4095 to -1 are errors */                                           \
    "ja 2f\n"                                                                                       \
    "test %%rax, %%rax\n" /* 0: in a clone, or at the end of a socket */                            \
    "jne 4f\n"                                                                                      \
    "add 88(%%rbx), %%rbx\n"                                                                        \
    "4: add %[size], %%rbx\n" /* the next call */                                                   \
    "cmp %[end], %%rbx\n"                                                                           \
    "jb 1b\n"                                                                                       \
    "sub %[size], %%rbx\n" /* execve has come back: a filter has answered in the kernel's place */  \
    "mov %[refused], %%eax\n"                                                                       \
    "2: neg %%eax\n"                                                                                \
    "mov 72(%%rbx), %%rcx\n"                                                                        \
    "mov %%eax, (%%rcx)\n" /* the error's number, into the packet */                                \
    "mov 56(%%rbx), %%rdi\n"                                                                        \
    "mov 64(%%rbx), %%rsi\n"                                                                        \
    "mov 80(%%rbx), %%rdx\n"                                                                        \
    "mov %[write], %%eax\n"                                                                         \
    "syscall\n"                                                                                     \
    "mov $1, %%edi\n"                                                                               \
    "mov %[exit], %%eax\n"                                                                          \
    "syscall\n"                                                                                     \
    "ud2\n" /* a filter may forbid even that */
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#define PINFOLD_TRAMPOLINE                                                                              \
    "movz x19, %[data], lsl 16\n" /* x19: the list */                                                   \
    "ldr x1, [sp]\n"              /* what the kernel left on the stack: argc, argv, null, envp, null */ \
    "add x2, sp, 8\n"                                                                                   \
    "str x2, [x19, %[argv]]\n" /* the second argument of execve */                                      \
    "add x2, x2, x1, lsl 3\n"                                                                           \
    "add x2, x2, 8\n"                                                                                   \
    "str x2, [x19, %[envp]]\n" /* the third one */                                                      \
    "ldr x19, [x19]\n"         /* x19: the call */                                                      \
    "1: ldr x8, [x19]\n"                                                                                \
    "ldp x0, x1, [x19, 8]\n"                                                                            \
    "ldp x2, x3, [x19, 24]\n"                                                                           \
    "ldp x4, x5, [x19, 40]\n"                                                                           \
    "svc 0\n"                                                                                           \
    "cmn x0, 4\n" /* EINTR: once more, if it was the wait; whoever else says so is a filter */          \
    "b.ne 3f\n"                                                                                         \
    "cmp x8, %[wait]\n"                                                                                 \
    "b.eq 1b\n"                                                                                         \
    "3: cmn x0, 4095\n" /* -4095 to -1 are errors */                                                    \
    "b.hs 2f\n"                                                                                         \
    "cbnz x0, 4f\n" /* 0: in a clone, or at the end of a socket */                                      \
    "ldr x3, [x19, 88]\n"                                                                               \
    "add x19, x19, x3\n"                                                                                \
    "4: add x19, x19, %[size]\n" /* the next call */                                                    \
    "movz x3, %[data], lsl 16\n"                                                                        \
    "add x3, x3, %[end]\n"                                                                              \
    "cmp x19, x3\n"                                                                                     \
    "b.lo 1b\n"                                                                                         \
    "sub x19, x19, %[size]\n" /* execve has come back: a filter has answered in the kernel's place */   \
    "mov w0, %[refused]\n"                                                                              \
    "2: neg w0, w0\n"                                                                                   \
    "ldr x3, [x19, 72]\n"                                                                               \
    "str w0, [x3]\n" /* the error's number, into the packet */                                          \
    "ldp x0, x1, [x19, 56]\n"                                                                           \
    "ldr x2, [x19, 80]\n"                                                                               \
    "mov x8, %[write]\n"                                                                                \
    "svc 0\n"                                                                                           \
    "mov x0, 1\n"                                                                                       \
    "mov x8, %[exit]\n"                                                                                 \
    "svc 0\n"                                                                                           \
    "brk 0\n" /* a filter may forbid even that */
#endif

#ifdef PINFOLD_TRAMPOLINE
constexpr bool kHasCode = true;
extern "C" const char kTrampoline[], kTrampolineEnd[];

// Never called: it only gives the instructions a place among the constants. They run in the new file alone.
[[gnu::used]] void place_instructions() {
    asm volatile(
        ".pushsection .rodata\n"
        "kTrampoline:\n" PINFOLD_TRAMPOLINE
        "kTrampolineEnd:\n"
        ".popsection\n"
#if defined(__x86_64__)
        ::[first] "i"(kData),
        [argv] "i"(kData + kExec + 8), [envp] "i"(kData + kExec + 16), [end] "i"(kData + sizeof(CallList)),
#else
        ::[data] "i"(kData >> 16),
        [argv] "i"(kExec + 8), [envp] "i"(kExec + 16), [end] "i"(sizeof(CallList)),
#endif
        [wait] "i"(SYS_accept4), [refused] "i"(-EPERM), [size] "i"(sizeof(Call)), [write] "i"(SYS_write),
        [exit] "i"(SYS_exit_group));
}

std::string_view instructions() { return {kTrampoline, size_t(kTrampolineEnd - kTrampoline)}; }
#else
constexpr uint16_t kMachine = EM_NONE;
constexpr bool kHasCode = false;
std::string_view instructions() { return {}; }
#endif

static_assert(sizeof(Call) == 96 && offsetof(Call, arguments) == 8 && offsetof(Call, socket) == 56 &&
              offsetof(Call, packet) == 64 && offsetof(Call, code) == 72 && offsetof(Call, size) == 80 &&
              offsetof(Call, on_zero) == 88);

size_t size_of_file(const SeccompFilter* filter) {
    return kDataOffset + kRoomForWords + (filter == nullptr ? 0 : filter->program.size() * sizeof(sock_filter));
}

}  // namespace

bool has_trampoline() { return kHasCode; }

Result<UniqueFd> make_trampoline(const SeccompFilter* filter) {
    UniqueFd file = TRY(make_memory_program());
    if (::ftruncate(file.get(), off_t(size_of_file(filter))) != 0) return errno_error("make room for the trampoline");
    return file;
}

Result<TrampolineImage> TrampolineImage::map(int file, const SeccompFilter* filter) {
    const size_t size = size_of_file(filter);
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return errno_error("map the trampoline");
    return TrampolineImage(static_cast<char*>(memory), size);
}

TrampolineImage::TrampolineImage(char* memory, size_t size)
    : memory_(memory), size_(size), used_(kDataOffset + sizeof(CallList)) {}

TrampolineImage::TrampolineImage(TrampolineImage&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), size_(other.size_), used_(other.used_) {}

TrampolineImage::~TrampolineImage() {
    if (memory_ != nullptr) ::munmap(memory_, size_);
}

uint64_t TrampolineImage::add(const void* data, size_t size) {
    constexpr size_t kAlignment = 8;
    const size_t place = (used_ + kAlignment - 1) / kAlignment * kAlignment;
    is_full_ = is_full_ || place > size_ || size > size_ - place;
    if (is_full_) return 0;
    std::memcpy(memory_ + place, data, size);
    used_ = place + size;
    return kData + place - kDataOffset;
}

TrampolineImage::Letter TrampolineImage::add_letter(const std::string& packet) {
    // NOLINTBEGIN(performance-no-int-to-ptr): addresses in another program
    const iovec part{reinterpret_cast<void*>(add(packet)), packet.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    const cmsghdr rights{CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    std::memcpy(control, &rights, sizeof rights);
    const uint64_t place = add(control, sizeof control);
    msghdr header{};
    header.msg_iov = reinterpret_cast<iovec*>(add(&part, sizeof part));
    header.msg_iovlen = 1;
    header.msg_control = reinterpret_cast<void*>(place);
    header.msg_controllen = sizeof control;
    // NOLINTEND(performance-no-int-to-ptr)
    return {add(&header, sizeof header), place + CMSG_LEN(0)};
}

void TrampolineImage::call(long number, std::initializer_list<uint64_t> arguments, const std::string& object) {
    if (count_ == kMostCalls) __builtin_trap();
    Call& one = calls_[count_++];
    one = {};
    one.number = static_cast<uint64_t>(number);
    std::copy(arguments.begin(), arguments.end(), one.arguments);
    const FailurePacket failure = failure_of_call(step_, object);
    one.socket = static_cast<uint64_t>(socket_);
    one.packet = add(failure.bytes);
    one.code = one.packet + failure.code;
    one.size = failure.bytes.size();
}

void TrampolineImage::say(const std::string& packet) {
    call(SYS_write, {uint64_t(socket_), add(packet), packet.size()}, "send to the other process");
}

void TrampolineImage::skip_on_zero(int calls) {
    calls_[count_ - 1].on_zero = static_cast<uint64_t>(calls * static_cast<int64_t>(sizeof(Call)));
}

void TrampolineImage::execute(const std::string& path) { call(SYS_execve, {add(path.c_str(), path.size() + 1)}, path); }

Result<void> TrampolineImage::finish() {
    if (is_full_) return plain_error("the program's path is too long");
    CallList list{};
    std::copy_n(calls_, count_, list.calls + kMostCalls - count_);
    list.first = kData + offsetof(CallList, calls) + (kMostCalls - count_) * sizeof(Call);
    std::memcpy(memory_ + kDataOffset, &list, sizeof list);
    constexpr size_t kStart = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr);
    const std::string_view code = instructions();
    const Elf64_Ehdr header{{ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                            ET_EXEC,
                            kMachine,
                            EV_CURRENT,
                            kCode + kStart,
                            sizeof(Elf64_Ehdr),
                            0,
                            0,
                            sizeof(Elf64_Ehdr),
                            sizeof(Elf64_Phdr),
                            3,
                            0,
                            0,
                            0};
    const uint64_t data = used_ - kDataOffset;
    const Elf64_Phdr segments[] = {
        {PT_LOAD, PF_R | PF_X, 0, kCode, kCode, kStart + code.size(), kStart + code.size(), kDataOffset},
        {PT_LOAD, PF_R | PF_W, kDataOffset, kData, kData, data, data, kDataOffset},
        {PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 0, 0, 0}};
    std::memcpy(memory_, &header, sizeof header);
    std::memcpy(memory_ + sizeof header, segments, sizeof segments);
    std::memcpy(memory_ + kStart, code.data(), code.size());
    return {};
}

Error become_trampoline(int file, const std::vector<std::string>& args, const std::vector<std::string>& env) {
    if (const Result<void> sealed = seal(file); !sealed) return sealed.error();
    const std::vector<char*> argv = pointers(args), envp = pointers(env);
    ::execveat(file, "", argv.data(), envp.data(), AT_EMPTY_PATH);
    return errno_error("execute the trampoline");
}

Error error_of_call(const std::string& step, const std::string& object, int code) {
    if (step == "exec") return in_step("exec", execution_error(code, object));
    if (object == "clone") return in_step(step.c_str(), clone_error(code, true));
    return in_step(step.c_str(), errno_error(code, object));
}

}  // namespace pinfold
