// Records which functions a pinfold built with -Dpath=true enters and leaves; tests/lint/path reads it.
//
// The record is the file that PINFOLD_PATH_RECORD names, mapped shared by all processes that a start clones. There is
// no descriptor that could be closed or leaked, and no system call after a process's first function: a new root and a
// seccomp filter do not matter. Only for programs of one thread, as run is.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

extern const char __executable_start;

namespace {

// The order of all members is known to tests/lint/path.
enum class Kind : uint32_t { unused, inherited, enter, leave };

struct Event {
    uint32_t process;
    Kind kind;
    uint64_t function;  // how far behind the start of the executable
};

constexpr uint64_t kMostEvents = 1'000'000;

struct Record {
    std::atomic<uint64_t> events;
    std::atomic<uint64_t> processes;
    Event list[kMostEvents];
};

Record* record = nullptr;
bool asked = false;

// The functions that this process is in: the bottom of the stack of whoever is cloned here.
uint64_t stack[1000];
size_t depth = 0;

// Zero in a process that was just cloned: the kernel empties this page then.
uint32_t* process = nullptr;

void open_record() {
    asked = true;
    const char* path = std::getenv("PINFOLD_PATH_RECORD");
    if (path == nullptr) return;
    const int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, sizeof(Record)) != 0) std::abort();
    void* shared = ::mmap(nullptr, sizeof(Record), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    void* own = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || own == MAP_FAILED || ::madvise(own, page, MADV_WIPEONFORK) != 0) std::abort();
    record = static_cast<Record*>(shared);
    process = static_cast<uint32_t*>(own);
}

void append(Kind kind, uint64_t function) {
    const uint64_t place = record->events++;
    if (place < kMostEvents) record->list[place] = {*process, kind, function};
}

bool is_recording() {
    if (!asked) open_record();
    if (record == nullptr) return false;
    if (*process == 0) {
        *process = static_cast<uint32_t>(++record->processes);
        for (size_t i = 0; i < depth; ++i) append(Kind::inherited, stack[i]);
    }
    return true;
}

}  // namespace

extern "C" void __cyg_profile_func_enter(void* function, void* /*caller*/) {
    if (!is_recording()) return;
    const auto place = static_cast<uint64_t>(static_cast<const char*>(function) - &__executable_start);
    if (depth == sizeof stack / sizeof stack[0]) std::abort();
    append(Kind::enter, stack[depth++] = place);
}

extern "C" void __cyg_profile_func_exit(void* /*function*/, void* /*caller*/) {
    if (is_recording()) append(Kind::leave, stack[--depth]);
}
