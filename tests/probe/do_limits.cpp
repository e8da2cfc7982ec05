// Trying to use more than a limit allows: huge pages, a disk, an RDMA device, keys.
#include <fcntl.h>
#include <linux/keyctl.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "commands.hpp"

namespace probe {

namespace {

constexpr size_t kHugePage = 2 << 20;

long wall_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

char* map_memory(size_t bytes, int kind) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void touch(volatile char* pages, size_t bytes) {
    for (size_t offset = 0; offset < bytes; offset += 4096) pages[offset] = 1;
}

volatile char* take_memory(size_t bytes, int kind) {
    char* pages = map_memory(bytes, kind);
    if (pages != nullptr) touch(pages, bytes);
    return pages;
}

// Whoever is killed takes the parent along; who ends by itself does not.
Object await_children(size_t count) {
    for (int status = 0; count > 0 && ::wait(&status) > 0; --count) {
        if (WIFSIGNALED(status)) ::raise(SIGKILL);
    }
    return success_if(count == 0);
}

// One of the oldest commands of ib_uverbs, which every driver has: a header, a request and a place for the answer.
template <class Request, class Response>
bool verb(int device, uint32_t command, Request request, Response& response) {
    request.response = reinterpret_cast<uintptr_t>(&response);
    char message[sizeof(ib_uverbs_cmd_hdr) + sizeof request];
    const ib_uverbs_cmd_hdr header{command, sizeof message / 4, sizeof response / 4};
    std::memcpy(message, &header, sizeof header);
    std::memcpy(message + sizeof header, &request, sizeof request);
    return ::write(device, message, sizeof message) == ssize_t(sizeof message);
}

}  // namespace

Object hugepages_command(const Arguments& arguments) {
    const size_t bytes = std::stoul(arguments[0]) * kHugePage;
    const bool reserve = arguments.size() == 1 || arguments[1] != "noreserve";
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (reserve ? 0 : MAP_NORESERVE);
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) return failure();
    for (size_t offset = 0; offset < bytes; offset += kHugePage) static_cast<volatile char*>(memory)[offset] = 1;
    return success();
}

Object disk_command(const Arguments& arguments) {
    const bool write = arguments[1] == "write";
    const size_t block = std::stoul(arguments[2]);
    const int disk = ::open(arguments[0].c_str(), (write ? O_WRONLY : O_RDONLY) | O_DIRECT | O_CLOEXEC);
    if (disk < 0) return failure();
    void* buffer = std::aligned_alloc(4096, block);
    std::memset(buffer, 1, block);
    const long begin = wall_ms();
    for (long left = std::stol(arguments[3]); left > 0; --left) {
        const ssize_t done = write ? ::pwrite(disk, buffer, block, 0) : ::pread(disk, buffer, block, 0);
        if (done < 0) return failure();
    }
    return success().add("wall_ms", wall_ms() - begin);
}

Object rdma_command(const Arguments& arguments) {
    const int device = ::open(arguments[0].c_str(), O_RDWR | O_CLOEXEC);
    ib_uverbs_get_context_resp context{};
    if (device < 0 || !verb(device, IB_USER_VERBS_CMD_GET_CONTEXT, ib_uverbs_get_context{}, context)) return failure();
    Object out = success();
    ib_uverbs_alloc_pd_resp domain{};
    if (!verb(device, IB_USER_VERBS_CMD_ALLOC_PD, ib_uverbs_alloc_pd{}, domain)) {
        out.add("object_errno", strerrorname_np(errno));
    }
    return out;
}

Object hoard_command(const Arguments& arguments) {
    const size_t count = std::stoul(arguments[0]), bytes = std::stoul(arguments[1]) << 20;
    for (size_t i = 0; i < count; ++i) {
        if (::fork() != 0) continue;
        const auto take = [bytes] {
            if (take_memory(bytes, MAP_PRIVATE) == nullptr) ::_exit(1);
        };
        if (arguments.size() > 2) outlive_first_thread(take);
        take();
        for (;;) ::pause();
    }
    return await_children(count);
}

// They stay until all of them have it, and a while longer, so that it can be seen.
Object share_command(const Arguments& arguments) {
    const size_t count = std::stoul(arguments[0]), bytes = std::stoul(arguments[1]) << 20;
    volatile char* pages = take_memory(bytes, MAP_SHARED);
    if (pages == nullptr) return failure();
    for (size_t i = 0; i < count; ++i) {
        if (::fork() != 0) continue;
        for (size_t offset = 0; offset < bytes; offset += 4096) pages[offset] = 2;
        const long begin = wall_ms();
        while (wall_ms() - begin < 500) ::usleep(10'000);
        ::_exit(0);
    }
    return await_children(count);
}

// Shared memory that is filled, and afterwards in nobody's resident memory: it is given back, filled by children that
// end, or unmapped but for its first page.
Object hide_command(const Arguments& arguments) {
    const size_t parts = std::stoul(arguments[0]), bytes = std::stoul(arguments[1]) << 20;
    const std::string& way = arguments[2];
    const size_t whole = way == "unmap" ? bytes : parts * bytes;
    char* memory = nullptr;
    for (size_t part = 0; part < parts; ++part) {
        if (part == 0 || way == "unmap") memory = map_memory(whole, MAP_SHARED);
        if (memory == nullptr) return failure();
        char* begin = memory + (way == "unmap" ? 0 : part * bytes);
        const pid_t child = way == "children" ? ::fork() : 0;
        if (child < 0) return failure();
        if (child == 0) touch(begin, bytes);
        if (child == 0 && way == "children") ::_exit(0);
        if (way == "children") await_children(1);
        if (way == "give-back") ::madvise(begin, bytes, MADV_DONTNEED);
        if (way == "unmap") ::munmap(begin + 4096, bytes - 4096);
    }
    return success();
}

Object leaderless_command(const Arguments& arguments) {
    const size_t bytes = std::stoul(arguments[0]) << 20;
    outlive_first_thread([bytes] { take_memory(bytes, MAP_SHARED); });
}

Object fill_keys_command(const Arguments&) {
    if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0) return failure();
    for (int number = 0;; ++number) {
        const std::string name = "key-" + std::to_string(number);
        if (::syscall(SYS_add_key, "user", name.c_str(), "x", 1, KEY_SPEC_SESSION_KEYRING) < 0) break;
    }
    if (errno != EDQUOT) return failure();
    std::printf("READY\n");
    std::fflush(stdout);
    for (;;) ::pause();
}

}  // namespace probe
