// Scopes: the other end of pinfold-scope.
#include "cgroup/scope.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/own_path.hpp"
#include "base/strings.hpp"
#include "cgroup/deadline.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

namespace {

constexpr const char* kProgram = "pinfold-scope";
// It gives up by itself before that, and says why; this is for one that cannot.
constexpr std::chrono::seconds kPatience{15};
constexpr size_t kMaxAnswer = 4096;

// Beside pinfold, as in the build directory, or where it is installed; never where $PATH leads.
Result<std::string> find_program() {
    const std::string own = own_path();
    for (const std::string& path :
         {concat(own.substr(0, own.rfind('/') + 1), kProgram), concat(PINFOLD_LIBEXECDIR, "/", kProgram)}) {
        if (path.starts_with('/') && ::access(path.c_str(), X_OK) == 0) return path;
    }
    return plain_error(concat(kProgram, " is neither beside pinfold nor in ", PINFOLD_LIBEXECDIR))
        .with_hint("install it there, or use --cgroup-manager cgroupfs");
}

// A caller's LD_LIBRARY_PATH may lead into the bundle, so of the environment it gets only the way to the bus.
std::vector<std::string> environment() {
    std::vector<std::string> variables;
    for (const char* name : {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"}) {
        if (const char* value = ::getenv(name)) variables.push_back(concat(name, "=", value));
    }
    return variables;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result;
    for (std::string& word : words) result.push_back(word.data());
    result.push_back(nullptr);
    return result;
}

// What a started program gets besides its arguments: no signal blocked or ignored, no descriptor of ours but `errors`.
class SpawnSettings {
public:
    explicit SpawnSettings(int errors) {
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawn_file_actions_init(&files_);
        sigset_t signals;
        ::sigemptyset(&signals);
        ::posix_spawnattr_setsigmask(&attributes_, &signals);
        ::sigfillset(&signals);
        ::posix_spawnattr_setsigdefault(&attributes_, &signals);
        ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        ::posix_spawn_file_actions_adddup2(&files_, errors, STDERR_FILENO);
        ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDWR, 0);
        ::posix_spawn_file_actions_adddup2(&files_, STDIN_FILENO, STDOUT_FILENO);
        ::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        ::posix_spawn_file_actions_destroy(&files_);
        ::posix_spawnattr_destroy(&attributes_);
    }

    const posix_spawnattr_t* attributes() const { return &attributes_; }
    const posix_spawn_file_actions_t* files() const { return &files_; }

private:
    posix_spawnattr_t attributes_{};
    posix_spawn_file_actions_t files_{};
};

// Until its end closes the pipe. What it had to say, or nothing if it has not ended in time.
std::optional<std::string> read_answer(int pipe) {
    const Deadline deadline(kPatience);
    std::string answer;
    for (;;) {
        pollfd ready{pipe, POLLIN, 0};
        if (::poll(&ready, 1, static_cast<int>(deadline.left_ms())) == 0) return std::nullopt;
        char buffer[512];
        const ssize_t got = ::read(pipe, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return answer;
        if (answer.size() < kMaxAnswer) answer.append(buffer, size_t(got));
    }
}

Result<void> await_program(pid_t pid, int pipe) {
    std::optional<std::string> answer = read_answer(pipe);
    if (!answer) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!answer) return plain_error(concat(kProgram, " has not ended within ", kPatience.count(), " s"));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    while (answer->ends_with('\n')) answer->pop_back();
    return plain_error(answer->empty() ? concat(kProgram, " failed without a word") : *answer);
}

Result<void> run_program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TRY(find_program()));
    std::vector<std::string> variables = environment();
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("pipe");
    const UniqueFd reader(ends[0]);
    UniqueFd writer(ends[1]);
    const SpawnSettings settings(writer.get());
    pid_t pid = 0;
    const int failed = ::posix_spawn(&pid, arguments[0].c_str(), settings.files(), settings.attributes(),
                                     pointers(arguments).data(), pointers(variables).data());
    if (failed != 0) return errno_error(failed, concat("start ", arguments[0]));
    writer.reset();
    return await_program(pid, reader.get());
}

// Below a service of that name are a user's units, and only those.
bool is_users(const CgroupPlace& place) { return place.path.find("/user@") != std::string::npos; }

Result<void> ask(const CgroupPlace& place, const char* verb, const std::vector<std::string>& properties) {
    std::vector<std::string> arguments = {is_users(place) ? "--user" : "--system", verb, place.scope};
    arguments.insert(arguments.end(), properties.begin(), properties.end());
    TRY_IN(concat(verb, " ", place.scope), run_program(std::move(arguments)));
    return {};
}

std::string of_process(pid_t pid) { return concat("PIDs=", pid); }

}  // namespace

bool has_scope_program() { return PINFOLD_HAS_SCOPE; }

Result<void> start_scope(const CgroupPlace& place, pid_t pid, const std::vector<std::string>& properties) {
    std::vector<std::string> all = {of_process(pid)};
    all.insert(all.end(), properties.begin(), properties.end());
    return ask(place, "start", all);
}

Result<void> change_scope(const CgroupPlace& place, const std::vector<std::string>& properties) {
    return properties.empty() ? Result<void>() : ask(place, "set", properties);
}

Result<void> stop_scope(const CgroupPlace& place) { return ask(place, "stop", {}); }

Result<void> attach_to_scope(const CgroupPlace& place, pid_t pid) { return ask(place, "attach", {of_process(pid)}); }

}  // namespace pinfold
