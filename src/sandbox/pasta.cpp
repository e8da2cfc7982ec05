// A network of its own for a sandbox.
#include "sandbox/pasta.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <vector>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "process/payload_steps.hpp"

namespace pinfold {

namespace {

constexpr size_t kMostNames = 1 << 20;

constexpr int kNotFound = 127;  // the watcher's exit code if there is no pasta

// What pasta gets: the namespaces, and the ends of pipes for its word that it is ready and for its complaints.
struct Equipment {
    UniqueFd user;
    UniqueFd net;
    Pipe ready;
    Pipe complaints;
};

// Opened here: pasta itself may have lost the right to by the time it gets to them.
Result<Equipment> make_equipment(pid_t sandbox_init) {
    const std::string namespaces = concat("/proc/", sandbox_init, "/ns/");
    return Equipment{TRY(open_at(AT_FDCWD, namespaces + "user", O_RDONLY)),
                     TRY(open_at(AT_FDCWD, namespaces + "net", O_RDONLY)), TRY(make_pipe(" to pasta")),
                     TRY(make_pipe(" to pasta"))};
}

// It joins the sandbox's user namespace, so that it has no more rights than over that. No port is passed in either
// direction, and the gateway's address does not stand for the host's loopback: otherwise the sandbox could reach what
// only the host itself is meant to.
std::vector<std::string> words_for_pasta(const Equipment& equipment) {
    std::vector<std::string> words = {"pasta", "--foreground", "--quiet", "--config-net", "--no-map-gw"};
    for (const char* direction : {"-t", "-u", "-T", "-U"}) words.insert(words.end(), {direction, "none"});
    words.emplace_back("--no-netns-quit");
    // Only then: it would put that address into the answers of all other servers, too.
    const Result<std::string> names = read_regular("/etc/resolv.conf", kMostNames);
    if (is_for_this_machine_only(names ? *names : "")) words.insert(words.end(), {"--dns-forward", kPastaNameServer});
    words.insert(words.end(), {"--userns", concat("/proc/self/fd/", equipment.user.get())});
    words.insert(words.end(), {"--netns", concat("/proc/self/fd/", equipment.net.get())});
    words.insert(words.end(), {"--pid", concat("/proc/self/fd/", STDOUT_FILENO)});
    // Or else it becomes nobody, who may not join namespaces of root's.
    if (::geteuid() == 0) words.insert(words.end(), {"--runas", "0:0"});
    return words;
}

// Nobody reads what it says once it is ready; it ignores SIGPIPE itself, and takes it ill if that was done already.
[[noreturn]] void become_pasta(pid_t watcher, const Equipment& equipment, char* const* words) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != watcher) ::_exit(1);
    const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    ::dup2(null.get(), STDIN_FILENO);
    ::dup2(equipment.ready.to.get(), STDOUT_FILENO);
    ::dup2(equipment.complaints.to.get(), STDERR_FILENO);
    ::close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
    for (const int fd : {equipment.user.get(), equipment.net.get()}) ::fcntl(fd, F_SETFD, 0);
    ::execvp(words[0], words);
    ::_exit(kNotFound);
}

// Of all descriptors it keeps two, in the place of the streams: those are the caller's, and somebody may await their
// end. Its exit code is pasta's.
[[noreturn]] void watch_over_pasta(int sandbox_init, const Equipment& equipment, char* const* words) {
    ::setsid();  // a terminal's signals are for the sandbox
    reset_signals();
    ::prctl(PR_SET_NAME, "pinfold-pasta");
    const pid_t watcher = ::getpid();
    const pid_t pasta = ::fork();
    if (pasta == 0) become_pasta(watcher, equipment, words);
    const UniqueFd process = open_pidfd(pasta);
    if (pasta < 0 || !process || ::chdir("/") != 0) ::_exit(1);
    const int kept[] = {::fcntl(sandbox_init, F_DUPFD, 3), ::fcntl(process.get(), F_DUPFD, 3)};
    for (const int number : {0, 1}) ::dup2(kept[number], number);
    ::close_range(2, UINT_MAX, 0);
    pollfd ends[] = {{0, POLLIN, 0}, {1, POLLIN, 0}};
    while (::poll(ends, 2, -1) < 0 && errno == EINTR) continue;
    ::kill(pasta, SIGKILL);
    ::_exit(reap(pasta));
}

std::string last_line(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
}

Error failure_of(pid_t watcher, int complaints) {
    if (reap(watcher) == kNotFound) {
        return plain_error("there is no program pasta")
            .with_hint("install the package passt, or say --network host or none");
    }
    const Result<std::string> text = read_at_most(complaints, "what pasta says", size_t{1} << 20);
    return plain_error(
        concat("pasta could not set up the network: ", text ? quoted(last_line(*text)) : "it was killed"));
}

// Else pasta itself would say so, in words that mean something else to our callers.
Result<void> check_tun() {
    const Result<UniqueFd> device = open_at(AT_FDCWD, "/dev/net/tun", O_RDWR);
    if (device) return {};
    return Error(device.error()).with_hint("load the module tun, and let the user read and write its device");
}

Result<pid_t> start_here(const Child& sandbox_init) {
    TRY(check_tun());
    Equipment equipment = TRY(make_equipment(sandbox_init.pid()));
    const std::vector<std::string> words = words_for_pasta(equipment);
    const std::vector<char*> arguments = pointers(words);
    const pid_t watcher = ::fork();
    if (watcher < 0) return errno_error("start pasta");
    if (watcher == 0) watch_over_pasta(sandbox_init.pidfd.get(), equipment, arguments.data());
    equipment.ready.to.reset();
    equipment.complaints.to.reset();
    char digit = 0;  // of its pid, which it writes when it is ready
    ssize_t size = 0;
    while ((size = ::read(equipment.ready.from.get(), &digit, 1)) < 0 && errno == EINTR) continue;
    if (size != 1) return failure_of(watcher, equipment.complaints.from.get());
    return watcher;
}

}  // namespace

bool is_on_loopback(std::string_view server_line) {
    return server_line.starts_with("nameserver 127.") || server_line.starts_with("nameserver ::1");
}

bool is_for_this_machine_only(std::string_view resolv_conf) {
    const std::vector<std::string_view> lines = split(resolv_conf, '\n');
    return std::ranges::none_of(
        lines, [](std::string_view line) { return line.starts_with("nameserver ") && !is_on_loopback(line); });
}

Result<Pasta> Pasta::start(const Child& sandbox_init) {
    return Pasta(TRY_IN("--network pasta", start_here(sandbox_init)));
}

Pasta::~Pasta() {
    if (watcher_ >= 0) reap(watcher_);
}

}  // namespace pinfold
