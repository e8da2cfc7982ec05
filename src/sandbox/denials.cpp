// The listener of a job's seccomp filter.
#include "sandbox/denials.hpp"

#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "seccomp/reporting.hpp"

namespace pinfold {

namespace {

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
    return denials;
}

void Denials::serve(short events) {
    // Asking a listener that has no caller left would, before Linux 6.11, wait for ever.
    if ((events & POLLIN) == 0) return listener_.reset();
    std::ranges::fill(request_, 0);
    std::ranges::fill(response_, 0);
    auto* call = reinterpret_cast<seccomp_notif*>(request_.data());
    if (::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, call) != 0) {
        // A caller that was killed meanwhile is no loss.
        if (errno != ENOENT && errno != EINTR) listener_.reset();
        return;
    }
    count(*call);
    auto* answer = reinterpret_cast<seccomp_notif_resp*>(response_.data());
    answer->id = call->id;
    answer->error = -denial_errno(program_, call->data);
    int sent = 0;
    do sent = ::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, answer);
    while (sent != 0 && errno == EINTR);
    // ENOENT: the caller is gone. Any other would wait for ever; without a listener the kernel answers them all.
    if (sent != 0 && errno != ENOENT) return listener_.reset();
    slow_down();
}

void Denials::count(const seccomp_notif& call) {
    const std::pair<uint32_t, int> key(call.data.arch, call.data.nr);
    const auto known = calls_.find(key);
    if (known != calls_.end()) {
        ++known->second.count;
        return;
    }
    std::string name = syscall_name(call.data.arch, call.data.nr);
    // Numbers that nobody knows must not take the room of calls that matter.
    const bool has_name = name.find_first_not_of("-0123456789") != name.npos;
    const bool has_room = calls_.size() < kMostCalls && (has_name || ++numbers_ <= kMostNumbers);
    DeniedCall& entry = calls_[has_room ? key : kOthers];
    if (++entry.count > 1) return;
    entry.name = has_room ? std::move(name) : "others";
    std::ranges::copy(call.data.args, entry.arguments.begin());
    entry.program = program_of(listener_.get(), call);
}

// A job that does nothing else would take as much of our time as of its own, and ours is not limited.
void Denials::slow_down() {
    constexpr uint64_t kPatience = 20000;
    if (++total_ > kPatience) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::vector<DeniedCall> Denials::take() const {
    std::vector<DeniedCall> calls;
    for (const auto& [key, call] : calls_) calls.push_back(call);
    std::ranges::stable_sort(calls, std::greater(), &DeniedCall::count);
    return calls;
}

}  // namespace pinfold
