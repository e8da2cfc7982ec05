// The benchmark: what pinfold takes for its verbs, what others take for the same, and what the kernel alone takes.
#include <fcntl.h>
#include <getopt.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>

#include "base/fs.hpp"
#include "base/strings.hpp"
#include "breakdown.hpp"
#include "report.hpp"
#include "scenarios.hpp"
#include "workplace.hpp"

namespace pinfold::bench {

namespace {

constexpr const char* kUsage =
    "usage: ./dev bench [--rounds N] [--warmup N] [--rows TEXT] [--slow] [--json FILE] [--svg FILE]\n"
    "                   [--markdown FILE] [--readme] [--breakdown]\n"
    "  --rounds N       measured runs of each scenario (100)\n"
    "  --warmup N       runs of each scenario before that, not counted (5)\n"
    "  --rows TEXT      only the rows whose title, or what they compare with, has this text in it\n"
    "  --slow           with 300 and 1000 sandboxes at once\n"
    "  --json FILE      also write the figures, with every sample, to FILE\n"
    "  --svg FILE       also draw the ratios\n"
    "  --markdown FILE  also write the table in Markdown\n"
    "  --readme         write both into README.md\n"
    "  --breakdown      instead of all that, show the steps of pinfold and of the floor with their times\n"
    "On a busy machine the figures need a priority: chrt -f 10 ./dev bench\n";

struct Options {
    int rounds = 100;
    int warmup = 5;
    std::string rows;
    std::vector<std::string> notes;
    bool slow = false;
    bool breakdown = false;
    bool help = false;
    std::map<std::string, std::string> files;     // by the name of the option
    std::map<std::string, std::string> programs;  // likewise
};

Result<int> parse_count(const char* name, const char* text) {
    const auto count = parse_number<int>(text);
    if (!count || *count < 0) return plain_error(concat("--", name, ": ", quoted(text), " is not a count"));
    return *count;
}

// Files have the key 'f', programs, which the script of the same folder names, 'p'.
Result<Options> parse_options(int argc, char** argv) {
    static const option kOptions[] = {{"rounds", required_argument, nullptr, 'r'},
                                      {"warmup", required_argument, nullptr, 'w'},
                                      {"rows", required_argument, nullptr, 'o'},
                                      {"slow", no_argument, nullptr, 's'},
                                      {"note", required_argument, nullptr, 'n'},
                                      {"breakdown", no_argument, nullptr, 'b'},
                                      {"help", no_argument, nullptr, 'h'},
                                      {"json", required_argument, nullptr, 'f'},
                                      {"svg", required_argument, nullptr, 'f'},
                                      {"markdown", required_argument, nullptr, 'f'},
                                      {"pinfold", required_argument, nullptr, 'p'},
                                      {"floor", required_argument, nullptr, 'p'},
                                      {"launcher", required_argument, nullptr, 'p'},
                                      {"payload", required_argument, nullptr, 'p'},
                                      {"waiter", required_argument, nullptr, 'p'},
                                      {"hello", required_argument, nullptr, 'p'},
                                      {"new-crun", required_argument, nullptr, 'p'},
                                      {"docker-config", required_argument, nullptr, 'p'},
                                      {nullptr, 0, nullptr, 0}};
    Options options;
    int index = 0;
    for (int choice; (choice = ::getopt_long(argc, argv, "", kOptions, &index)) != -1;) {
        switch (choice) {
            case 'r': options.rounds = TRY(parse_count("rounds", optarg)); break;
            case 'w': options.warmup = TRY(parse_count("warmup", optarg)); break;
            case 'o': options.rows = optarg; break;
            case 's': options.slow = true; break;
            case 'n': options.notes.emplace_back(optarg); break;
            case 'b': options.breakdown = true; break;
            case 'h': options.help = true; break;
            case 'f': options.files[kOptions[index].name] = optarg; break;
            case 'p': options.programs[kOptions[index].name] = optarg; break;
            default: return plain_error(kUsage);
        }
    }
    if (optind != argc || options.rounds == 0) return plain_error(kUsage);
    return options;
}

// All of them copies on the tmpfs, except for what only watches.
Result<Programs> copy_programs(const Workplace& workplace, const Options& options) {
    const auto given = [&](const char* name) -> Result<std::string> {
        const auto found = options.programs.find(name);
        return workplace.copy(found == options.programs.end() ? "" : found->second, name);
    };
    const auto installed = [&](const char* name) { return workplace.copy(find_program(name), name); };
    Programs programs;
    programs.pinfold = TRY(given("pinfold"));
    programs.floor = TRY(given("floor"));
    programs.launcher = TRY(given("launcher"));
    programs.payload = TRY(given("payload"));
    programs.waiter = TRY(given("waiter"));
    programs.hello = TRY(given("hello"));
    programs.new_crun = TRY(given("new-crun"));
    programs.docker_config = TRY(given("docker-config"));
    programs.crun = TRY(installed("crun"));
    programs.runc = TRY(installed("runc"));
    programs.bwrap = TRY(installed("bwrap"));
    programs.strace = find_program("strace");
    programs.python = ::access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "";
    return programs;
}

std::vector<Row> select_rows(const std::string& text) {
    std::vector<Row> rows = list_rows();
    std::erase_if(rows, [&](const Row& row) {
        return row.title.find(text) == row.title.npos && row.other_name.find(text) == row.title.npos;
    });
    return rows;
}

bool is_wanted(const Scenario& scenario, const std::vector<Row>& rows) {
    return std::any_of(rows.begin(), rows.end(),
                       [&](const Row& row) { return row.own == scenario.name || row.other == scenario.name; });
}

// A command's own first words, which stand below the line that tells how it ended.
std::string_view reason_of(std::string_view message) {
    const std::vector<std::string_view> lines = split(message, '\n');
    return lines.size() > 1 && !lines[1].empty() ? lines[1] : lines[0];
}

// What cannot be measured here is told in its row.
template <class Value>
bool went_well(Series& series, const Result<Value>& result) {
    if (result) return true;
    const std::string& message = result.error().message;
    std::fprintf(stderr, "bench: %s: %s\n", series.scenario.name.c_str(), message.c_str());
    series.scenario.skip_reason = concat("failed: ", reason_of(message));
    series.samples.clear();
    return false;
}

bool takes_part(const Scenario& scenario, int round) {
    if (!scenario.skip_reason.empty()) return false;
    if (scenario.every == 0) return round == 0;
    return round % scenario.every == 0 && (round >= 0 || scenario.every == 1);
}

// Every scenario once, in an order of its own: what one leaves behind in the kernel (namespaces die in the background)
// falls on each of the others alike. Rounds below zero warm up.
void run_round(Runner& runner, const std::vector<Series*>& phase, std::mt19937& random, int round) {
    std::vector<Series*> order = phase;
    std::shuffle(order.begin(), order.end(), random);
    for (Series* series : order) {
        if (!takes_part(series->scenario, round)) continue;
        const Result<Sample> sample = series->scenario.once(runner, concat("bench", round));
        if (went_well(*series, sample) && round >= 0) series->samples.push_back(*sample);
    }
}

void count_calls(Runner& counter, Series& series) {
    if (!series.scenario.skip_reason.empty() || !series.scenario.counts_calls) return;
    const Result<Sample> sample = series.scenario.once(counter, "counted");
    const Result<double> calls = counter.take_calls();
    if (sample && calls) series.calls = *calls;
    else std::fprintf(stderr, "bench: %s: system calls not counted\n", series.scenario.name.c_str());
}

void run_phase(const Programs& programs, const std::string& directory, std::vector<Series*> phase,
               const Options& options) {
    Runner runner(programs.launcher);
    std::vector<Series*> prepared;
    for (Series* series : phase) {
        const bool is_ready = series->scenario.skip_reason.empty() &&
                              (!series->scenario.prepare || went_well(*series, series->scenario.prepare(runner)));
        if (is_ready) prepared.push_back(series);
    }
    std::mt19937 random(1);  // the same orders in every run of the benchmark
    for (int round = -options.warmup; round < options.rounds; round++) run_round(runner, prepared, random, round);
    Runner counter(programs.launcher, programs.strace, directory);
    for (Series* series : prepared) {
        if (!programs.strace.empty()) count_calls(counter, *series);
        if (series->scenario.clean_up) went_well(*series, series->scenario.clean_up(runner));
    }
}

Report measure(Workplace& workplace, const Programs& programs, const std::vector<Scenario>& scenarios,
               const Options& options) {
    Report report;
    report.rounds = options.rounds;
    report.rows = select_rows(options.rows);
    for (const Scenario& scenario : scenarios) {
        if (is_wanted(scenario, report.rows)) report.series.push_back({scenario, {}, 0});
    }
    for (const Phase phase : {Phase::starts, Phase::many_containers, Phase::own_cgroups}) {
        if (phase == Phase::own_cgroups) workplace.leave_cgroup_view();
        std::vector<Series*> members;
        for (Series& series : report.series) {
            if (series.scenario.phase == phase) members.push_back(&series);
        }
        run_phase(programs, workplace.directory(), members, options);
    }
    report.notes = options.notes;
    report.notes.insert(report.notes.end(), workplace.notes().begin(), workplace.notes().end());
    return report;
}

Result<void> write_files(const Report& report, const Options& options) {
    for (const auto& [kind, path] : options.files) {
        const std::string text = kind == "json"  ? as_json(report)
                                 : kind == "svg" ? as_svg(report)
                                                 : as_markdown(report);
        const UniqueFd file = TRY(open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
        TRY(write_once(file.get(), text, path));
    }
    return {};
}

Result<std::string> run_in(Workplace& workplace, const std::string& cgroup, const Options& options) {
    const Programs programs = TRY(copy_programs(workplace, options));
    const std::vector<Scenario> scenarios = TRY(list_scenarios({workplace, programs, cgroup, options.slow}));
    Runner runner(programs.launcher);
    if (options.breakdown) return break_down(runner, scenarios, options.rounds);
    const Report report = measure(workplace, programs, scenarios, options);
    TRY(write_files(report, options));
    return as_table(report);
}

Result<std::string> run(int argc, char** argv) {
    const Options options = TRY(parse_options(argc, argv));
    if (options.help) return std::string(kUsage);
    if (select_rows(options.rows).empty())
        return plain_error(concat("--rows '", options.rows, "': no row has this text in it"))
            .with_hint("README.md has the titles of all rows");
    // Whoever is created and not awaited becomes our child, and does not stay as a zombie.
    if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return errno_error("become a subreaper");
    Workplace workplace = TRY(Workplace::set_up());
    const std::string cgroup = concat("pinfold-bench-", ::getpid());
    Result<std::string> text = run_in(workplace, cgroup, options);
    ::rmdir(concat("/sys/fs/cgroup/", cgroup).c_str());  // a failed scenario may have left its group
    return text;
}

}  // namespace

}  // namespace pinfold::bench

int main(int argc, char** argv) {
    auto text = pinfold::bench::run(argc, argv);
    if (!text) {
        const pinfold::Error& error = text.error();
        std::fprintf(stderr, "bench: %s\n%s%s%s", error.message.c_str(),
                     error.hint.empty() ? "" : "hint: ", error.hint.c_str(), error.hint.empty() ? "" : "\n");
        return 1;
    }
    std::fputs((*text).c_str(), stdout);
    return 0;
}
