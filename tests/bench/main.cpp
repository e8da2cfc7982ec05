// The benchmark: how long a start of the smallest container takes, for pinfold, for others, and for the kernel alone.
#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <random>

#include "at_once.hpp"
#include "base/fs.hpp"
#include "base/strings.hpp"
#include "breakdown.hpp"
#include "bundle.hpp"
#include "report.hpp"
#include "variants.hpp"
#include "workplace.hpp"

namespace pinfold::bench {

namespace {

constexpr const char* kUsage =
    "usage: run [--rounds N] [--warmup N] [--only NAME,...] [--json FILE] [--breakdown]\n"
    "           [--at-once N] [--pinfold PATH] [--floor PATH] [--launcher PATH] [--payload PATH]\n"
    "  --rounds N       measured runs of each variant (100)\n"
    "  --warmup N       runs of each variant before that, not counted (5)\n"
    "  --only NAME,...  only these variants: exec floor pinfold crun bwrap, and floor+cgroup pinfold+cgroup\n"
    "                   crun+cgroup runc+cgroup\n"
    "  --json FILE      also write the figures, with every sample, to FILE\n"
    "  --breakdown      instead of the comparison, show the steps of pinfold and of the floor with their times\n"
    "  --at-once N      instead of the comparison, N sandboxes at the same time, on the machine's own cgroups\n"
    "On a busy machine the figures need a priority: chrt -f 10 tests/bench/run\n";

struct Options {
    int rounds = 100;
    int warmup = 5;
    std::vector<std::string> only;
    std::string json_file;
    bool breakdown = false;
    int at_once = 0;
    bool help = false;
    Programs programs;
};

Result<int> parse_count(const char* name, const char* text) {
    const auto count = parse_number<int>(text);
    if (!count || *count < 0) return plain_error(concat("--", name, ": ", quoted(text), " is not a count"));
    return *count;
}

Result<Options> parse_options(int argc, char** argv) {
    static const option kOptions[] = {
        {"rounds", required_argument, nullptr, 'r'},  {"warmup", required_argument, nullptr, 'w'},
        {"only", required_argument, nullptr, 'o'},    {"json", required_argument, nullptr, 'j'},
        {"breakdown", no_argument, nullptr, 'b'},     {"at-once", required_argument, nullptr, 'a'},
        {"help", no_argument, nullptr, 'h'},          {"pinfold", required_argument, nullptr, 'P'},
        {"floor", required_argument, nullptr, 'F'},   {"launcher", required_argument, nullptr, 'L'},
        {"payload", required_argument, nullptr, 'T'}, {nullptr, 0, nullptr, 0}};
    Options options;
    for (int choice; (choice = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
        switch (choice) {
            case 'r': options.rounds = TRY(parse_count("rounds", optarg)); break;
            case 'w': options.warmup = TRY(parse_count("warmup", optarg)); break;
            case 'o':
                for (const std::string_view name : split(optarg, ',')) options.only.emplace_back(name);
                break;
            case 'j': options.json_file = optarg; break;
            case 'b': options.breakdown = true; break;
            case 'a': options.at_once = TRY(parse_count("at-once", optarg)); break;
            case 'h': options.help = true; break;
            case 'P': options.programs.pinfold = optarg; break;
            case 'F': options.programs.floor = optarg; break;
            case 'L': options.programs.launcher = optarg; break;
            case 'T': options.programs.payload = optarg; break;
            default: return plain_error(kUsage);
        }
    }
    if (optind != argc || options.rounds == 0) return plain_error(kUsage);
    return options;
}

Result<void> select(std::vector<Variant>& variants, const std::vector<std::string>& only) {
    for (const std::string& name : only) {
        const auto same_name = [&](const Variant& variant) { return variant.name == name; };
        if (std::none_of(variants.begin(), variants.end(), same_name)) {
            return plain_error(concat("--only: no variant ", quoted(name)));
        }
    }
    std::erase_if(variants, [&](const Variant& variant) {
        return !only.empty() && std::find(only.begin(), only.end(), variant.name) == only.end();
    });
    return {};
}

// Every variant once, in an order of its own: what one leaves behind in the kernel (namespaces die in the background)
// falls on each of the others alike. Rounds below zero warm up.
Result<void> run_round(const std::string& launcher, std::vector<Series>& all, std::mt19937& random, int round) {
    std::vector<Series*> order;
    for (Series& series : all) {
        if (series.variant.skip_reason.empty()) order.push_back(&series);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (Series* series : order) {
        Sample sample = TRY(run_once(launcher, series->variant.command(concat("bench", round))));
        if (sample.exit_code != 0) {
            const std::string& name = series->variant.name;
            return plain_error(concat(name, " exited with ", sample.exit_code, ":\n", sample.stderr_text));
        }
        sample.stderr_text.clear();
        if (round >= 0) series->samples.push_back(std::move(sample));
    }
    return {};
}

Result<Report> measure(const std::vector<Variant>& variants, const Options& options) {
    Report report;
    report.rounds = options.rounds;
    for (const Variant& variant : variants) report.series.push_back({variant, {}});
    std::mt19937 random(1);  // the same orders in every run of the benchmark
    for (int round = -options.warmup; round < options.rounds; round++) {
        TRY(run_round(options.programs.launcher, report.series, random, round));
    }
    return report;
}

Result<std::string> run_in(const Workplace& workplace, const std::string& cgroup, const Options& options) {
    const std::string bundle = workplace.directory() + "/bundle";
    TRY(make_bundle({bundle, options.programs.payload, "/" + cgroup}));
    std::vector<Variant> variants =
        list_variants({workplace, options.programs, bundle, concat("/sys/fs/cgroup/", cgroup)});
    TRY(select(variants, options.only));
    if (options.breakdown) return break_down(options.programs.launcher, variants, options.rounds);
    Report report = TRY(measure(variants, options));
    report.notes = workplace.notes();
    if (!options.json_file.empty()) {
        const UniqueFd file = TRY(open_at(AT_FDCWD, options.json_file, O_WRONLY | O_CREAT | O_TRUNC, 0644));
        TRY(write_once(file.get(), as_json(report), options.json_file));
    }
    return as_table(report);
}

Result<std::string> run(int argc, char** argv) {
    const Options options = TRY(parse_options(argc, argv));
    if (options.help) return std::string(kUsage);
    if (options.at_once > 0) return run_at_once(options.programs.pinfold, options.at_once);
    const Workplace workplace = TRY(Workplace::set_up());
    const std::string cgroup = concat("pinfold-bench-", ::getpid());
    Result<std::string> text = run_in(workplace, cgroup, options);
    if (!text) ::rmdir(concat("/sys/fs/cgroup/", cgroup).c_str());  // a failed variant may have left its group
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
