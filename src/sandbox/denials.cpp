// The listener of a job's seccomp filter.
#include "sandbox/denials.hpp"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>

#include "base/clock.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"
#include "seccomp/reporting.hpp"

namespace pinfold {

namespace {

using namespace std::chrono_literals;

constexpr size_t kMostCalls = 1024;  // more than any kernel has
constexpr size_t kMostNumbers = 16;  // that have no name
constexpr std::pair<uint32_t, int> kOthers(0, -1);

// The file may be another process's by now, so ask whether the call still waits after it has been read.
std::string program_of(int listener, const seccomp_notif& call) {
    Result<std::string> name = read_file(concat("/proc/", call.pid, "/comm"));
    uint64_t id = call.id;
    if (!name || ::ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) != 0) return {};
    while (name->ends_with('\n')) name->pop_back();
    return *name;
}

}  // namespace

Result<Denials> Denials::create(UniqueFd listener, std::vector<sock_filter> program) {
    Denials denials(std::move(listener), std::move(program));
    seccomp_notif_sizes sizes{};
    if (::syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return errno_error("seccomp notifications");
    denials.request_.resize(std::max(sizeof(seccomp_notif), size_t{sizes.seccomp_notif}));
    denials.response_.resize(std::max(sizeof(seccomp_notif_resp), size_t{sizes.seccomp_notif_resp}));
    denials.timer_ = TRY(make_timer(CLOCK_MONOTONIC));
    return denials;
}

// All that are there: whoever is killed while it waits to be received was never counted.
void Denials::serve(short events) {
    // Asking a listener that has no caller left would, before Linux 6.11, wait for ever.
    if ((events & POLLIN) == 0) return listener_.reset();
    constexpr int kAtOnce = 256;  // others have their turn as well
    pollfd slot{listener_.get(), POLLIN, 0};
    for (int received = 0; received < kAtOnce && receive(); ++received) {
        if (::poll(&slot, 1, 0) != 1 || (slot.revents & POLLIN) == 0) return;
    }
}

bool Denials::receive() {
    std::ranges::fill(request_, 0);
    auto* call = reinterpret_cast<seccomp_notif*>(request_.data());
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, call) != 0) {
        // A caller that was killed meanwhile is no loss.
        if (errno != ENOENT && errno != EINTR) listener_.reset();
        return false;
    }
    count(*call);
    const int error = -denial_errno(program_, call->data);
    constexpr uint64_t kPatience = 20000;
    if (++total_ <= kPatience) answer(call->id, error);
    else waiting_.push_back({call->id, error});
    if (waiting_.size() == 1 && !slow_down()) listener_.reset();  // the kernel answers them
    return bool(listener_);
}

bool Denials::answer(uint64_t id, int error) {
    std::ranges::fill(response_, 0);
    auto* answer = reinterpret_cast<seccomp_notif_resp*>(response_.data());
    answer->id = id;
    answer->error = error;
    int sent = 0;
    do sent = ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, answer);
    while (sent != 0 && errno == EINTR);
    // ENOENT: the caller is gone. Any other would wait for ever; without a listener the kernel answers them all.
    if (sent != 0 && errno != ENOENT) listener_.reset();
    return sent == 0;
}

// A job that does nothing but such calls would take as much of our time as of its own, and ours is not limited: so in
// the end one of them is answered in a millisecond. They are received and counted all the same.
Result<void> Denials::slow_down() { return set_timer(timer_, std::chrono::milliseconds(1)); }

void Denials::answer_waiting() {
    uint64_t passed = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &passed, sizeof passed);
    for (bool answered = false; listener_ && !answered && !waiting_.empty(); waiting_.pop_front())
        answered = answer(waiting_.front().id, waiting_.front().error);
    if (!listener_) waiting_.clear();
    if (!waiting_.empty() && !slow_down()) listener_.reset();
}

void Denials::count(const seccomp_notif& call) {
    const std::pair<uint32_t, int> key(call.data.arch, call.data.nr);
    const auto known = calls_.find(key);
    last_at_ = monotonic_ns();
    if (known != calls_.end()) {
        ++known->second.count;
        last_ = known->second.name;
        return;
    }
    std::string name = syscall_name(call.data.arch, call.data.nr);
    // Numbers that nobody knows must not take the room of calls that matter.
    const bool has_name = name.find_first_not_of("-0123456789") != name.npos;
    const bool has_room = calls_.size() < kMostCalls && (has_name || ++numbers_ <= kMostNumbers);
    DeniedCall& entry = calls_[has_room ? key : kOthers];
    last_ = name;
    if (++entry.count > 1) return;
    entry.name = has_room ? std::move(name) : "others";
    std::ranges::copy(call.data.args, entry.arguments.begin());
    entry.program = program_of(listener_.get(), call);
}

// What is right before depends on how fast the machine is, which a short life tells.
std::string Denials::hint(int64_t failed_at, std::chrono::nanoseconds lived) const {
    const std::chrono::nanoseconds right_before = std::clamp<std::chrono::nanoseconds>(lived / 2, 100ms, 1s);
    if (last_.empty() || failed_at - last_at_ > right_before.count()) return {};
    const char* const remedy = last_ == "ptrace" ? "no profile that comes with pinfold lets programs trace; of a "
                                                   "sanitizer's build, -e ASAN_OPTIONS=detect_leaks=0"
                                                 : "--seccomp names another profile";
    return concat("the seccomp profile denied ", last_, " right before it failed; ", remedy);
}

std::vector<DeniedCall> Denials::take() const {
    std::vector<DeniedCall> calls;
    for (const auto& [key, call] : calls_) calls.push_back(call);
    std::ranges::stable_sort(calls, std::greater(), &DeniedCall::count);
    return calls;
}

}  // namespace pinfold
