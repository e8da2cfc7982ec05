// Trying one fault after the other on containers of their own.
#include "world.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace pinfold::faults {

using namespace integration;

namespace {

const char* const kWaits = "READY";

// One sentence of pinfold's, and hints; empty where it is that.
std::string error_complaint(const std::string& text) {
    std::istringstream lines(text);
    int errors = 0;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("pinfold: ") && line.find("warning: ") == std::string::npos) ++errors;
        else if (!line.starts_with("pinfold: ") && !line.starts_with("hint: ")) return "strange words: " + text;
    }
    if (errors == 1) return "";
    return errors == 0 ? "failed without an error: " + text : "several errors: " + text;
}

// Reaps all children; those that are about to end are given the time to. False where one stays.
bool all_children_ended() {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, nullptr);
    const timespec patience{testing::slow_machine() ? 20 : 10, 0};
    for (;;) {
        const pid_t pid = ::waitpid(-1, nullptr, WNOHANG | __WALL);
        if (pid < 0 && errno == ECHILD) return true;
        if (pid == 0 && ::sigtimedwait(&child, nullptr, &patience) < 0 && errno == EAGAIN) return false;
    }
}

// So that the next point is not blamed for it.
void kill_children() {
    const std::string self = std::to_string(::getpid());
    std::istringstream pids(read_text("/proc/" + self + "/task/" + self + "/children"));
    for (pid_t pid = 0; pids >> pid;) ::kill(pid, SIGKILL);
    all_children_ended();
}

// What must work for there to be a test at all.
void require(const Ended& ended) {
    if (ended.status != 0) throw std::runtime_error("without any fault: " + ended.err);
}

void stay_in_background(Bundle& bundle) {
    bundle.config["process"].erase("terminal");
    bundle.config["linux"].erase("seccomp");  // which may want a listener
    bundle.probe({"wait-signal"});
}

std::string first_difference(const json& learnt, const json& found) {
    const json patch = json::diff(learnt, found);
    return patch.empty() ? "" : patch.dump().substr(0, 600);
}

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario), bundle_(std::make_unique<Bundle>()), neighbour_(std::make_unique<Bundle>()) {
    for (Bundle* each : {bundle_.get(), neighbour_.get()}) {
        scenario.configure(*each);
        if (each == neighbour_.get()) stay_in_background(*each);
        each->write_config();
        if (scenario.rootless) each->make_rootless(kNobodySpecial);
    }
    if (scenario.rootless) spawn_ = {.uid = kNobodySpecial, .env = {"HOME=/", "XDG_RUNTIME_DIR="}};
    const UniqueFd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    require(verb({"create", "--bundle", neighbour_->path(), neighbour_->id()}, null.get()));
    require(verb({"start", neighbour_->id()}));
    neighbour_state_ = look_at_neighbour();
    if (scenario.joined) {
        const int pid = json::parse(verb({"state", neighbour_->id()}).out).at("pid");
        bundle_->add_namespace("pid", "/proc/" + std::to_string(pid) + "/ns/pid").write_config();
    }
    for (const fs::path group : cgroups_named(neighbour_->id())) groups_.push_back(group.parent_path() / bundle_->id());
    mounts_ = mount_table();
}

std::string World::look_at_neighbour() const {
    const std::string state = verb({"state", neighbour_->id()}).out;
    const json parsed = json::parse(state, nullptr, false);
    const pid_t pid = parsed.is_object() ? parsed.value("pid", 0) : 0;
    return state + read_text("/proc/" + std::to_string(pid) + "/cgroup");
}

Words World::command(const Words& words) const {
    const std::pair<const char*, std::string> places[] = {
        {"ID", bundle_->id()}, {"BUNDLE", bundle_->path()}, {"HOST", bundle_->host()}};
    Words out;
    for (std::string word : words) {
        for (const auto& [name, value] : places) {
            const size_t size = std::strlen(name);
            const bool meant =
                word == name || word.starts_with(name + std::string("/")) || word.starts_with(name + std::string(":"));
            if (meant) word.replace(0, size, value);
            const size_t second = word.find(std::string(":") + name + "/");  // of SRC:DST
            if (second != word.npos) word.replace(second + 1, size, value);
        }
        out.push_back(word);
    }
    return bundle_->verb(out);
}

Ended World::verb(const Words& words, int out) const {
    Output said = Output::through_pipe();
    Output errors = Output::through_pipe();
    TraceRequest request{.argv = command(words), .spawn = spawn_, .init = {}, .fault = nullptr, .follow = false};
    request.spawn.fds = {{1, out < 0 ? said.writer() : out}, {2, errors.writer()}};
    const Traced ended = trace(request);
    if (ended.hung) throw std::runtime_error(words.front() + " does not end; " + errors.text());
    return {ended.status, said.text(), errors.text()};
}

std::string World::status() const {
    const Ended ended = verb({"state", "ID"});
    const json state = json::parse(ended.out, nullptr, false);
    return state.is_object() ? state.value("status", "") : "unknown: " + ended.err;
}

// The verb's stage, by verbs that nothing disturbs.
void World::prepare() {
    container_ = Output::through_pipe();
    said_ = scenario_.terminal ? Output::through_terminal() : Output::through_pipe();
    errors_ = Output::through_pipe();
    if (scenario_.cold) fs::remove_all(bundle_->state_root() / ".seccomp");
    if (scenario_.console) console_ = std::make_unique<DescriptorSocket>(bundle_->host() / "console");
    if (scenario_.listener) listener_ = std::make_unique<DescriptorSocket>(bundle_->host() / "listener");
    if (scenario_.before == Stage::none) return;
    require(verb({"create", "--bundle", "BUNDLE", "ID"}, container_.writer()));
    container_.close_writer();
    if (scenario_.before == Stage::created) return;
    require(verb({"start", "ID"}));
    if (!container_.await(kWaits)) throw std::runtime_error("the container was not started");
    if (scenario_.before == Stage::paused) require(verb({"pause", "ID"}));
    if (scenario_.before == Stage::stopped) stop();
}

void World::stop() const {
    const auto pid = json::parse(verb({"state", "ID"}).out).at("pid").get<pid_t>();
    require(verb({"kill", "ID", "KILL"}));
    ::waitpid(pid, nullptr, __WALL);  // orphaned, it is our child
}

Traced World::trace_verb(const Fault* fault) {
    const bool creates = scenario_.words.front() == "create";
    const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const int in = scenario_.terminal ? said_.writer() : null.get();
    TraceRequest request{.argv = command(scenario_.words), .spawn = spawn_, .init = {}, .fault = fault};
    request.spawn.fds = {{0, in}, {1, creates ? container_.writer() : said_.writer()}, {2, errors_.writer()}};
    if (scenario_.words.front() == "start") {
        request.init = json::parse(verb({"state", "ID"}).out).at("pid").get<pid_t>();
    }
    const Traced traced = trace(request);
    for (Output* output : {&container_, &said_, &errors_}) output->close_writer();
    if (console_ && traced.status == 0) (creates ? container_ : said_) = Output(console_->receive());
    return traced;
}

std::vector<Call> World::learn() {
    prepare();
    const Traced traced = trace_verb(nullptr);
    if (traced.status != scenario_.status) throw std::runtime_error("undisturbed, it fails: " + errors_.text());
    if (const std::string missing = scenario_.missing(*this); !missing.empty()) throw std::runtime_error(missing);
    require(verb({"delete", "--force", "ID"}));
    container_.await_end();
    said_.await_end();
    container_learnt_ = comparable(container_.text());
    said_learnt_ = comparable(said_.text());
    files_ = list_files();
    return traced.calls;
}

std::string World::container_complaint() {
    if (!container_.await(kWaits)) return "the payload does not come to its end: " + container_.text();
    const json answers = comparable(container_.text());
    if (container_learnt_.is_null()) return "";
    return begins(container_learnt_, answers) && !answers.empty() && answers.back() == kWaits
               ? ""
               : "not as undisturbed: " + first_difference(container_learnt_, answers);
}

std::string World::verb_complaint() {
    if (!said_.await_end()) return "its output does not end: " + said_.text();
    return said_learnt_.is_null() ? "" : first_difference(said_learnt_, comparable(said_.text()));
}

std::string World::difference(const std::string& text) {
    if (text_learnt_.empty()) text_learnt_ = text;
    return text == text_learnt_ ? "" : "not '" + text_learnt_ + "' but '" + text + "'";
}

std::string World::end_complaint() { return container_.await_end() ? "" : "the container lives"; }

std::string World::judge(const Fault& fault, const Traced& traced) {
    const std::string errors = errors_.text();
    if (traced.hung) return "did not end; " + errors;
    const bool killed = fault.error == kKilled && traced.struck;
    if (killed && fault.at.process == "0") return "";  // who is gone says nothing
    // To kill the process that is about to become the payload is to kill the payload: it may be told so.
    if (killed && traced.status == 128 + SIGKILL) return "";
    if (traced.status == scenario_.status) {
        const std::string missing = scenario_.missing(*this);
        if (!killed || missing.empty()) return missing;
        // A detached program of exec that was killed has no state to tell it.
        return scenario_.words.front() == "exec" || status() == "stopped" ? "" : missing;
    }
    // 255 is what engines expect of an exec that failed.
    if (traced.status >= 128 && traced.status != 255)
        return "ended with " + std::to_string(traced.status) + "; " + errors;
    return error_complaint(errors);
}

// Without what was asked for.
std::set<std::string> World::list_files() const {
    for (const char* name : {"console", "copy", "listener", "result"}) fs::remove(bundle_->host() / name);
    std::istringstream all(bundle_->listing());
    std::set<std::string> out;
    for (std::string name; std::getline(all, name);) {
        const bool is_cache =
            name == "state/.seccomp" || (name.starts_with("state/.seccomp/") && name.ends_with(".bpf"));
        // A pid file is the caller's, and so is what a kill leaves beside it: it cannot be both renamed, which is what
        // those who wait for it see, and without a name until then.
        const bool is_pid_file = name.starts_with("host/pid") || name.starts_with("host/.pinfold-");
        if (!is_cache && !is_pid_file) out.insert(name);
    }
    return out;
}

std::string World::left_behind() const {
    if (!all_children_ended()) {
        kill_children();
        return "a process is left";
    }
    if (mount_table() != mounts_) return "a mount is left";
    for (const std::string& group : groups_) {
        // Removed, so that the next point is not blamed for it.
        if (fs::exists(group)) return "a cgroup is left: " + group + (::rmdir(group.c_str()) == 0 ? "" : " and held");
    }
    const std::set<std::string> files = list_files();
    for (const std::string& file : files) {
        // Removed, so that the next point is not blamed for it.
        if (!files_.contains(file))
            return "a file is left: " + file + (fs::remove(bundle_->state_root() / ".." / file) ? "" : " and stays");
    }
    return files == files_ ? "" : "a file is missing";
}

std::string World::clean_up() {
    console_.reset();
    listener_.reset();
    try {
        const Ended deleted = verb({"delete", "--force", "ID"});
        if (deleted.status != 0) return "delete --force: " + deleted.err;
    } catch (const std::exception& error) {
        kill_children();
        return error.what();
    }
    if (const std::string left = left_behind(); !left.empty()) return left;
    container_.await_end();
    said_.await_end();
    // Whatever the verb said of its success: what ran, ran with all that it was to be restricted by.
    const json answers = comparable(container_.text());
    if (!begins(container_learnt_, answers)) return "ran differently: " + first_difference(container_learnt_, answers);
    const json said = comparable(said_.text());
    return begins(said_learnt_, said) ? "" : "ran differently: " + first_difference(said_learnt_, said);
}

std::string World::try_fault(const Fault& fault, bool& reached) {
    prepare();
    const Traced traced = trace_verb(&fault);
    reached = traced.struck;
    const std::string wrong = judge(fault, traced);
    const std::string left = clean_up();
    return wrong.empty() || left.empty() ? wrong + left : wrong + "; then " + left;
}

std::string World::neighbour_complaint() const {
    if (look_at_neighbour() != neighbour_state_) return "the neighbour's state has changed";
    const Ended answer = verb({"exec", neighbour_->id(), "/probe", "stat", "/"});
    return answer.status == 0 ? "" : "the neighbour does not answer: " + answer.err;
}

World::~World() { end_neighbour(); }

void World::end_neighbour() const { verb({"delete", "--force", neighbour_->id()}); }

}  // namespace pinfold::faults
