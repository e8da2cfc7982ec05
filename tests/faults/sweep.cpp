// Two workers share the points of a scenario; each has a world of its own. PINFOLD_FAULTS=all tries every point; any
// other value those whose names contain it. Otherwise PINFOLD_SEED, or the day, chooses, and a budget of time ends it.
#include "sweep.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <random>
#include <sstream>

#include "support/tried.hpp"

namespace pinfold::faults {

using namespace integration;

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWorkers = 2;
constexpr std::chrono::seconds kBudget{3};

constexpr std::array kErrors = {kKilled, EIO, ENOMEM, ENOSPC, EINTR};

// Calls that cannot fail, so that nobody can be asked to expect it; and those by which the C library prepares main() or
// manages memory, where it knows no way but abort().
constexpr std::array kNeverFail = {
    SYS_brk,      SYS_getpid, SYS_gettid,         SYS_getppid,      SYS_getuid,         SYS_geteuid, SYS_getgid,
    SYS_getegid,  SYS_umask,  SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_alarm,          SYS_futex,   SYS_arch_prctl,
    SYS_mprotect, SYS_exit,   SYS_exit_group,     SYS_rt_sigreturn, SYS_restart_syscall};

bool is_possible(long call, int error) {
    if (error == kKilled) return true;
    return std::find(kNeverFail.begin(), kNeverFail.end(), call) == kNeverFail.end();
}

std::string name_of(const Fault& fault) {
    const char* error = fault.error == kKilled ? "KILL" : strerrorname_np(fault.error);
    return fault.at.process + " " + call_name(fault.at.number) + " " + std::to_string(fault.at.occurrence) + " " +
           error;
}

struct Choice {
    std::string text;  // of PINFOLD_FAULTS
    unsigned seed = 0;
    bool all() const { return !text.empty(); }
};

const Choice& choice() {
    static const Choice chosen = [] {
        Choice out;
        if (const char* text = std::getenv("PINFOLD_FAULTS")) out.text = text;
        const char* seed = std::getenv("PINFOLD_SEED");
        out.seed = static_cast<unsigned>(seed != nullptr ? std::stoul(seed) : size_t(std::time(nullptr) / 86400));
        if (!out.all()) std::printf("PINFOLD_SEED=%u\n", out.seed);
        return out;
    }();
    return chosen;
}

std::vector<Fault> faults_at(const std::vector<Call>& calls) {
    std::vector<Fault> out;
    for (const Call& call : calls) {
        for (const int error : kErrors) {
            const Fault fault{call, error};
            if (!is_possible(call.number, error)) continue;
            // By the time a child of create waits, create has succeeded; `start` is where its failure is told.
            if (call.number == SYS_accept4 && call.process != "init" && error != kKilled) continue;
            const bool wanted =
                !choice().all() || choice().text == "all" || name_of(fault).find(choice().text) != std::string::npos;
            if (wanted) out.push_back(fault);
        }
    }
    if (!choice().all()) std::shuffle(out.begin(), out.end(), std::mt19937(choice().seed));
    return out;
}

// A line for each point: "+" where nothing is wrong, "." where the call was not made this time, "-" and what is wrong.
std::string try_one(World& world, const Fault& fault) {
    bool reached = false;
    std::string wrong;
    try {
        wrong = world.try_fault(fault, reached);
    } catch (const std::exception& error) {
        wrong = error.what();
    } catch (...) {
        wrong = "something did not come in time";
    }
    std::replace(wrong.begin(), wrong.end(), '\n', ' ');
    if (wrong.empty()) return reached ? "+" : ".";
    return "-" + name_of(fault) + ": " + wrong;
}

[[noreturn]] void work(World& world, const std::vector<Fault>& faults, size_t first, int results) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const Clock::time_point end = Clock::now() + (testing::slow_machine() ? 6 : 1) * kBudget;
    for (size_t i = first; i < faults.size() && (choice().all() || Clock::now() < end); i += kWorkers) {
        const std::string line = try_one(world, faults[i]) + "\n";
        if (::write(results, line.data(), line.size()) < 0) break;
    }
    ::_exit(0);
}

class Worker {
public:
    Worker(World& world, const std::vector<Fault>& faults, size_t first) {
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        results_ = UniqueFd(ends[0]);
        pid_ = ::fork();
        if (pid_ == 0) work(world, faults, first, ends[1]);
        ::close(ends[1]);
    }

    // All lines, once the worker has ended.
    std::string finish() const {
        std::string text;
        std::array<char, 4096> buffer{};
        ssize_t count = 0;
        while ((count = ::read(results_.get(), buffer.data(), buffer.size())) > 0)
            text.append(buffer.data(), size_t(count));
        int status = 0;
        ::waitpid(pid_, &status, 0);
        if (status != 0) text += "-a worker died\n";
        return text;
    }

private:
    UniqueFd results_;
    pid_t pid_ = -1;
};

struct Count {
    int tried = 0;
    int failed = 0;
};

void judge(const Scenario& scenario, const std::string& lines, Count& count) {
    std::istringstream text(lines);
    for (std::string line; std::getline(text, line);) {
        if (line == ".") continue;
        const bool withstood = line == "+";
        ++count.tried;
        if (!withstood) ++count.failed;
        testing::count_tried("points", withstood);
        CHECK_MESSAGE(withstood, scenario.name << ": " << line.substr(1));
    }
}

}  // namespace

void sweep(const Scenario& scenario) {
    std::array<std::unique_ptr<World>, kWorkers> worlds;
    std::vector<Call> calls;
    for (auto& world : worlds) {
        world = std::make_unique<World>(scenario);
        calls = world->learn();
    }
    const std::vector<Fault> faults = faults_at(calls);
    std::vector<Worker> workers;
    for (size_t i = 0; i < worlds.size(); ++i) workers.emplace_back(*worlds[i], faults, i);
    Count count;
    for (const Worker& worker : workers) judge(scenario, worker.finish(), count);
    for (const auto& world : worlds) CHECK(world->neighbour_complaint() == "");
    // Before the first bundle looks for what is left.
    for (const auto& world : worlds) world->end_neighbour();
    std::printf("%s: %d of %zu points tried, %d failed\n", scenario.name.c_str(), count.tried, faults.size(),
                count.failed);
}

}  // namespace pinfold::faults
