// A child that waits without a system call, and its peer.
#include "process/pause_point.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "support/testing.hpp"

using namespace pinfold;

namespace {

constexpr PausePoint kBeforeExec(PausePoint::kBeforeExec), kListener(PausePoint::kListener);

// A child of this program, which does not outlive the scope.
class Waiting {
public:
    explicit Waiting(const std::function<void(const Channel&)>& steps) {
        auto ends = Channel::make_pair().value();
        pid_ = ::fork();
        if (pid_ == 0) {
            ends.first.close();
            steps(ends.second);
            ::_exit(7);
        }
        channel_ = std::move(ends.first);
        pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
        REQUIRE(pidfd_);
    }
    ~Waiting() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        end();
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    const Channel& channel() const { return channel_; }
    ChildMemory memory() const { return {pid_, pidfd_.get()}; }
    // Its exit code, or the signal's number below zero.
    int end() {
        int status = 0;
        REQUIRE(::waitpid(std::exchange(pid_, 0), &status, 0) > 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    // The letter of its state, once it is that of the kernel, not one on the way there.
    char state(char wanted) const {
        for (;;) {
            std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
            std::stringstream text;
            text << file.rdbuf();
            const char state = text.str().at(text.str().rfind(')') + 2);
            if (state == wanted || state == 'Z') return state;
        }
    }

private:
    pid_t pid_ = -1;
    UniqueFd pidfd_;
    Channel channel_{UniqueFd()};
};

// As a payload does it.
void announce(const Channel& channel) {
    const UniqueFd faults = open_faults();
    Readiness readiness;
    readiness.listener.place.word = kListener.address();
    readiness.before_exec.word = kBeforeExec.address();
    if (!channel.send_ready(readiness, faults.get())) ::_exit(1);
}

void wait_twice(const Channel& channel) {
    announce(channel);
    kListener.wait();
    kBeforeExec.wait();
}

Packet ready_of(const Waiting& child) {
    Packet packet = std::move(child.channel().receive().value().value());
    packet.ready.listener.place.faults = packet.ready.before_exec.faults = packet.fd.get();
    return packet;
}

}  // namespace

TEST_CASE("pause point: the child sleeps until it may go on, at one word after the other") {
    Waiting child(wait_twice);
    const Packet packet = ready_of(child);
    if (!packet.fd) SKIP_TEST("no userfaultfd");
    for (const PausePlace& place : {packet.ready.listener.place, packet.ready.before_exec}) {
        REQUIRE(child.memory().await_waiting(place, child.channel()));
        CHECK(child.state('S') == 'S');
        REQUIRE(child.memory().let_go_on(place));
    }
    CHECK(child.end() == 7);
}

TEST_CASE("pause point: a signal does not end the wait") {
    Waiting child(wait_twice);
    const Packet packet = ready_of(child);
    if (!packet.fd) SKIP_TEST("no userfaultfd");
    for (const PausePlace& place : {packet.ready.listener.place, packet.ready.before_exec}) {
        REQUIRE(child.memory().await_waiting(place, child.channel()));
        ::kill(child.memory().pid, SIGSTOP);
        CHECK(child.state('T') == 'T');
        ::kill(child.memory().pid, SIGCONT);
        CHECK(child.state('S') == 'S');
        REQUIRE(child.memory().let_go_on(place));
    }
    CHECK(child.end() == 7);
}

TEST_CASE("pause point: who loses its peer does not go on") {
    Waiting child(wait_twice);
    {
        const Packet packet = ready_of(child);
        if (!packet.fd) SKIP_TEST("no userfaultfd");
        REQUIRE(child.memory().await_waiting(packet.ready.listener.place, child.channel()));
    }
    CHECK(child.end() < 0);
}

// Whoever else has the descriptor can clear the flag by which a read from it would not wait.
TEST_CASE("pause point: a descriptor that would be waited for is not") {
    Waiting child(wait_twice);
    const Packet packet = ready_of(child);
    if (!packet.fd) SKIP_TEST("no userfaultfd");
    REQUIRE(::fcntl(packet.fd.get(), F_SETFL, 0) == 0);
    const Result<void> waits = child.memory().await_waiting(packet.ready.listener.place, child.channel());
    REQUIRE_FALSE(waits);
    CHECK(waits.error().message == "the process that was started cannot be heard waiting");
}

TEST_CASE("pause point: without a userfaultfd the child is stopped where it waits") {
    Waiting child([](const Channel& channel) {
        Readiness readiness;
        readiness.before_exec.word = kBeforeExec.address();
        if (channel.send_ready(readiness)) kBeforeExec.wait();
    });
    const Packet packet = ready_of(child);
    REQUIRE(child.memory().await_waiting(packet.ready.before_exec, child.channel()));
    CHECK(child.state('T') == 'T');
    REQUIRE(child.memory().let_go_on(packet.ready.before_exec));
    CHECK(child.end() == 7);
}

TEST_CASE("pause point: what a child says, or its end, comes instead of its waiting") {
    for (const bool heard : {true, false}) {
        CAPTURE(heard);
        Waiting child([&](const Channel& channel) {
            if (heard) announce(channel);
            else if (!channel.send_ready({.before_exec = {kBeforeExec.address()}})) ::_exit(1);
            channel.send_failure(Error{2, "seccomp: refused", ""});
        });
        const Packet packet = ready_of(child);
        const Result<void> waits = child.memory().await_waiting(packet.ready.before_exec, child.channel());
        REQUIRE_FALSE(waits);
        const std::string& text = waits.error().message;
        CHECK((text == "seccomp: refused" || text == "the process ended while its rights were restricted"));
        CHECK(child.end() == 7);
    }
}

// Of whoever may trace the child, and has put its own in the place of that of the child.
TEST_CASE("a peer gives up on a userfaultfd whose memory is for ever being changed") {
    const size_t size = size_t(::sysconf(_SC_PAGESIZE));
    const UniqueFd faults(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
    if (!faults) SKIP_TEST("userfaultfd is forbidden here");
    uffdio_api api{.api = UFFD_API, .features = UFFD_FEATURE_EVENT_REMOVE, .ioctls = 0};
    REQUIRE(::ioctl(faults.get(), UFFDIO_API, &api) == 0);
    void* page = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    const auto address = reinterpret_cast<uintptr_t>(page);
    uffdio_register range{.range = {address, size}, .mode = UFFDIO_REGISTER_MODE_MISSING, .ioctls = 0};
    REQUIRE(::ioctl(faults.get(), UFFDIO_REGISTER, &range) == 0);
    // It waits until somebody has read of it.
    std::thread remover([&] { ::madvise(page, size, MADV_DONTNEED); });
    pollfd event{faults.get(), POLLIN, 0};
    REQUIRE(::poll(&event, 1, -1) == 1);
    const UniqueFd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    const ChildMemory memory{::getpid(), self.get()};
    CHECK_FALSE(memory.let_go_on({address, faults.get()}));
    uffd_msg message;
    CHECK(::read(faults.get(), &message, sizeof message) == ssize_t(sizeof message));
    remover.join();
}
