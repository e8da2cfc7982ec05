// The listener of a filter, with the kernel's own: calls are counted, and answered as the profile says.
#include "sandbox/denials.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <functional>
#include <future>
#include <thread>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "support/testing.hpp"

using namespace pinfold;

namespace {

constexpr uint32_t kNumber = offsetof(seccomp_data, nr);

constexpr uint32_t kNoCall = 5000;  // and all above it

// Answers for calls that no thread makes by itself; all else is allowed.
std::vector<sock_filter> filter(uint32_t of_chroot, uint32_t of_umount) {
    return {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chroot, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_umount2, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kNoCall, 2, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, of_chroot),
        BPF_STMT(BPF_RET | BPF_K, of_umount),
    };
}

int load(std::vector<sock_filter> program) {
    const sock_fprog loaded{static_cast<unsigned short>(program.size()), program.data()};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &loaded));
}

// A filter is a thread's own: this one has it, makes its calls, and takes it along.
class Caller {
public:
    explicit Caller(const std::function<void()>& calls)
        : thread_([this, calls] {
              ::prctl(PR_SET_NAME, "caller");
              listener_.set_value(load(filter(SECCOMP_RET_USER_NOTIF, SECCOMP_RET_USER_NOTIF)));
              calls();
          }) {}
    ~Caller() { thread_.join(); }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    UniqueFd listener() { return UniqueFd(listener_.get_future().get()); }

private:
    std::promise<int> listener_;
    std::thread thread_;
};

// Until the kernel says that nobody is left who could call.
void serve_all(Denials& denials) {
    while (denials.fd() >= 0) {
        pollfd slots[] = {{denials.fd(), POLLIN, 0}, {denials.timer(), POLLIN, 0}};
        if (::poll(slots, 2, -1) < 1) continue;
        if (slots[0].revents != 0) denials.serve(slots[0].revents);
        if (slots[1].revents != 0) denials.answer_waiting();
    }
}

uint64_t count_of(const Denials& denials, std::string_view name) {
    for (const DeniedCall& call : denials.take()) {
        if (call.name == name) return call.count;
    }
    return 0;
}

// Whether the thread sleeps, which one that makes one call after the other does in that call alone.
bool sleeps(pid_t thread) {
    const Result<std::string> text = read_file(concat("/proc/self/task/", thread, "/stat"));
    return thread != 0 && text && text->find(") S ") != std::string::npos;
}

int code_of(long number, const char* path) { return ::syscall(number, path, 0) == 0 ? 0 : errno; }

bool knows_listeners() {
    seccomp_notif_sizes sizes{};
    return ::syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) == 0;
}

}  // namespace

#define NEEDS_LISTENERS() \
    if (!knows_listeners()) SKIP_TEST("no seccomp notifications: valgrind has no seccomp(2)")

TEST_CASE("denials: numbers that no kernel has hide no call that has a name") {
    NEEDS_LISTENERS();
    constexpr int kJunk = 1100;
    Caller caller([] {
        for (int round = 0; round < 2; ++round) {
            for (int i = 0; i < kJunk; ++i) ::syscall(kNoCall + i);
        }
        ::syscall(SYS_chroot, "/nowhere");
    });
    Result<Denials> denials =
        Denials::create(caller.listener(), filter(SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ERRNO | ENOSYS));
    REQUIRE(denials);
    serve_all(*denials);
    const std::vector<DeniedCall> calls = denials->take();
    REQUIRE(calls.size() == 18);
    CHECK(calls[0].name == "others");
    CHECK(calls[0].count == 2 * (kJunk - 16));
    CHECK(calls[1].name == std::to_string(kNoCall));
    CHECK(calls[1].count == 2);
    CHECK(calls[17].name == "chroot");
}

TEST_CASE("denials: each call is counted and answered with the profile's own errno, until nobody is left to call") {
    NEEDS_LISTENERS();
    std::vector<int> codes;
    const char* path = "/nowhere";
    Caller caller([&] {
        codes.push_back(code_of(SYS_chroot, path));
        for (int i = 0; i < 3; ++i) codes.push_back(code_of(SYS_umount2, path));
    });
    Result<Denials> denials =
        Denials::create(caller.listener(), filter(SECCOMP_RET_ERRNO | EACCES, SECCOMP_RET_ERRNO | EXDEV));
    REQUIRE_MESSAGE(denials, denials.error().message);
    serve_all(*denials);
    CHECK(codes == std::vector<int>{EACCES, EXDEV, EXDEV, EXDEV});
    const std::vector<DeniedCall> calls = denials->take();
    REQUIRE(calls.size() == 2);
    CHECK(calls[0].name == "umount2");  // the most frequent first
    CHECK(calls[0].count == 3);
    CHECK(calls[0].arguments[0] == reinterpret_cast<uintptr_t>(path));
    CHECK(calls[0].program == "caller");
    CHECK(calls[1].name == "chroot");
    CHECK(calls[1].count == 1);
}

TEST_CASE("denials: after a flood answers come later, but all that wait are counted at once") {
    NEEDS_LISTENERS();
    constexpr uint64_t kFlood = 20000;
    std::array<std::atomic<pid_t>, 30> threads{};
    std::atomic<int> answered = 0;
    Caller caller([&] {
        for (uint64_t i = 0; i < kFlood; ++i) ::syscall(SYS_umount2, "/nowhere", 0);
        std::vector<std::thread> callers;
        for (std::atomic<pid_t>& thread : threads) {
            callers.emplace_back([&] {
                thread = ::gettid();
                if (code_of(SYS_chroot, "/nowhere") == EACCES) ++answered;
            });
        }
        for (std::thread& one : callers) one.join();
    });
    Result<Denials> denials =
        Denials::create(caller.listener(), filter(SECCOMP_RET_ERRNO | EACCES, SECCOMP_RET_ERRNO | EXDEV));
    REQUIRE(denials);
    pollfd slot{denials->fd(), POLLIN, 0};
    while (count_of(*denials, "umount2") < kFlood) {
        if (::poll(&slot, 1, -1) == 1) denials->serve(slot.revents);
    }
    while (!std::ranges::all_of(threads, [](const auto& thread) { return sleeps(thread); })) std::this_thread::yield();
    if (::poll(&slot, 1, 0) == 1) denials->serve(slot.revents);  // none is left where the last turn took them all
    CHECK(count_of(*denials, "chroot") == threads.size());
    serve_all(*denials);
    CHECK(answered == int(threads.size()));
}

TEST_CASE("denials: without calls there is nothing to tell") {
    NEEDS_LISTENERS();
    Caller caller([] {});
    Result<Denials> denials = Denials::create(caller.listener(), filter(SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW));
    REQUIRE_MESSAGE(denials, denials.error().message);
    serve_all(*denials);
    CHECK(denials->take().empty());
}
