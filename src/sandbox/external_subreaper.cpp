// The subreaper: a process of pinfold's that has a job run by another runtime.
#include "sandbox/external_subreaper.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/fs.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "cgroup/cgroup.hpp"
#include "process/supervise.hpp"

namespace pinfold {

namespace {

constexpr size_t kMostOfPidFile = 64;

// What a program said last, without the empty lines at its end.
std::string last_line(std::string_view text) {
    while (text.ends_with('\n')) text.remove_suffix(1);
    return std::string(text.substr(text.rfind('\n') + 1));
}

class Work {
public:
    Work(const ExternalJob& job, Channel link) : job_(job), link_(std::move(link)) {}

    // From nothing to the end of the job, or of the supervisor.
    Result<void> run();
    void tell(const Error& error) const { link_.send_failure(error); }
    // Until the supervisor has read what it wants.
    void await_dismissal() const;
    void clean_up() const;

private:
    std::string place(std::string_view name) const { return concat(job_.bundle.home, '/', name); }
    Result<int> call(const std::vector<std::string>& words, const CallStreams& streams) const;
    Error failure(std::string_view verb, int code, std::string_view text) const;
    Result<void> create();
    Result<void> start();
    Result<void> await_end();
    void kill_all() const;

    const ExternalJob& job_;
    Channel link_;
    UniqueFd first_;  // pidfd of the job's first process
};

// Apart from what the user runs as another: a root directory of its own. What it has to say besides its errors goes
// to a file there, so that none of it gets into the job's output.
Result<int> Work::call(const std::vector<std::string>& words, const CallStreams& streams) const {
    std::vector<std::string> line = {"--root", place("runtime"), "--log", place("log"), "--log-format", "json"};
    line.insert(line.end(), words.begin(), words.end());
    return call_runtime(job_.runtime, line, streams);
}

Error Work::failure(std::string_view verb, int code, std::string_view text) const {
    const std::string words = last_line(text);
    return plain_error(
        concat(job_.runtime.path, ' ', verb, ": ", words.empty() ? concat("ended with exit code ", code) : words));
}

// The job's streams are the runtime's own until it runs, so an error of the latter is found in them.
Result<void> Work::create() {
    Streams& streams = job_.streams.streams;
    const int code = TRY(call({"create", "--bundle", bundle_path(job_.bundle), "--pid-file", place("pid"), job_.id},
                              {streams.in.get(), streams.out.get(), streams.err.get()}));
    streams = {};
    // The other ends are the supervisor's alone: or the job would see no end of its input, and no reader gone.
    JobStreams ours = std::move(job_.streams);
    if (code != 0) return failure("create", code, ours.output.take_unread(1));
    const std::string text = TRY(read_regular(place("pid"), kMostOfPidFile));
    const pid_t pid = parse_number<pid_t>(split(text, '\n')[0]).value_or(0);
    first_ = open_pidfd(pid);
    if (!first_) return errno_error(concat(job_.runtime.path, " create: process ", quoted(text)));
    return link_.send(Message::born, pid, first_.get());
}

Result<void> Work::start() {
    const UniqueFd words(::memfd_create("errors", MFD_CLOEXEC));
    const int code = TRY(call({"start", job_.id}, {.err = words.get()}));
    if (code == 0) return {};
    char text[4096];  // of the end: there may be more than anybody would read
    const off_t end = ::lseek(words.get(), 0, SEEK_END);
    const ssize_t got = ::pread(words.get(), text, sizeof text, std::max<off_t>(0, end - off_t(sizeof text)));
    return failure("start", code, {text, size_t(std::max<ssize_t>(0, got))});
}

Result<void> Work::await_end() {
    pollfd slots[] = {{link_.fd(), POLLIN, 0}, {first_.get(), POLLIN, 0}};
    while (::poll(slots, 2, -1) < 0) {
        if (errno != EINTR) return errno_error("poll");
    }
    if (slots[1].revents == 0) return {};  // the supervisor is gone
    const ChildEnd end =
        TRY_IN(concat(job_.runtime.path, ": how the job ended is not to be known"), reap_held(first_.get()));
    return link_.send_ended(payload_end(end.how, end.usage));
}

Result<void> Work::run() {
    TRY_IN("bundle", lay_out(job_.bundle));
    TRY(create());
    const std::optional<Packet> go = TRY(link_.receive());
    if (!go) return {};
    TRY(start());
    return await_end();
}

void Work::await_dismissal() const {
    for (;;) {
        const Result<std::optional<Packet>> packet = link_.receive();
        if (!packet || !*packet) return;
    }
}

// All that runs for the job: whoever started it has ended, and so it is ours.
void Work::kill_all() const {
    const std::string file = concat("/proc/self/task/", ::getpid(), "/children");
    for (;;) {
        const Result<std::string> children = read_file(file);
        if (!children || children->empty()) return;
        for (const std::string_view word : split(*children, ' ')) {
            const pid_t pid = parse_number<pid_t>(word).value_or(0);
            if (pid <= 0) continue;
            ::kill(pid, SIGKILL);
            reap(pid);
        }
    }
}

// First the processes: runsc waits seconds for one that is dead, but not reaped. The group at the end, if there still
// is one: of a job that did not start, some runtimes leave it.
void Work::clean_up() const {
    kill_all();
    [[maybe_unused]] const auto deleted = call({"delete", "--force", job_.id}, {});
    kill_all();
    CgroupPath group = job_.group;
    if (!group.v1.empty()) group.v1["name=systemd"] = "/sys/fs/cgroup/systemd";  // which others use as well
    if (const Result<void> removed = remove_cgroup(group); !removed) log_warning(removed.error().message);
    remove_empty_home(group);
}

// A session of its own, as it has to outlive whatever ends our caller's; no streams, which are the job's.
[[noreturn]] void become_subreaper(const ExternalJob& job, Channel link) {
    ::setsid();
    ::umask(022);
    ::prctl(PR_SET_NAME, "pinfold-reaper");
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    Work work(job, std::move(link));
    if (const Result<void> done = work.run(); !done) work.tell(done.error());
    work.await_dismissal();
    work.clean_up();
    ::_exit(0);
}

}  // namespace

Result<ExternalSubreaper> ExternalSubreaper::start(const ExternalJob& job) {
    std::pair<Channel, Channel> ends = TRY(Channel::make_pair());
    const pid_t pid = ::fork();
    if (pid < 0) return errno_error("start a process: fork");
    if (pid == 0) {
        ends.first.close();
        become_subreaper(job, std::move(ends.second));
    }
    return ExternalSubreaper(pid, std::move(ends.first));
}

ExternalSubreaper::ExternalSubreaper(pid_t pid, Channel link)
    : pid_(pid), link_(std::move(link)), pidfd_(open_pidfd(pid)) {}

ExternalSubreaper::ExternalSubreaper(ExternalSubreaper&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), link_(std::move(other.link_)), pidfd_(std::move(other.pidfd_)) {}

ExternalSubreaper::~ExternalSubreaper() {
    if (pid_ == 0) return;
    link_.close();
    reap(pid_);
}

}  // namespace pinfold
