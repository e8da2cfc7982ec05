// The benchmark's results: as a table for people, in Markdown for the README, and as JSON for programs.
#include "report.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "base/strings.hpp"

namespace pinfold::bench {

namespace {

const Series* find(const Report& report, const std::string& scenario) {
    for (const Series& series : report.series) {
        if (series.scenario.name == scenario) return &series;
    }
    return nullptr;
}

std::vector<double> values_of(const Series& series, double Sample::*figure, double scale) {
    std::vector<double> values;
    for (const Sample& sample : series.samples) values.push_back(sample.*figure * scale);
    return values;
}

double instructions(const Report& report, const std::string& scenario) {
    const Series* series = find(report, scenario);
    return series == nullptr ? -1 : summarize(values_of(*series, &Sample::instructions, 1)).median;
}

double calls(const Report& report, const std::string& scenario) {
    const Series* series = find(report, scenario);
    return series == nullptr ? 0 : series->calls;
}

// Why a row has no figures, or only one.
std::string why_not(const Report& report, const Row& row) {
    for (const std::string& name : {row.own, row.other}) {
        const Series* series = find(report, name);
        if (series != nullptr && !series->scenario.skip_reason.empty())
            return concat(name, ": ", series->scenario.skip_reason);
    }
    return "";
}

std::string number(double value) { return formatted(value < 10 ? "%.2f" : value < 100 ? "%.1f" : "%.0f", value); }

// All that a table shows of a row, as text; "-" where there is nothing.
struct Cells {
    std::string own = "-", other = "-", ratio = "-", best = "-", spread = "-", own_calls = "-", other_calls = "-",
                own_instructions = "-", other_instructions = "-";
};

Cells cells_of(const Report& report, const Row& row) {
    Cells cells;
    const auto own = figures(report, row, row.own);
    const auto other = figures(report, row, row.other);
    if (own) cells.own = concat(number(own->median), " ", row.unit);
    if (own) cells.spread = concat(number(own->p10), " to ", number(own->p90));
    if (other) cells.other = concat(number(other->median), " ", row.unit);
    if (own && other && other->median > 0) cells.ratio = formatted("%.2f", own->median / other->median);
    if (own && other && other->minimum > 0) {
        cells.best = is_rate(row) ? formatted("%.2f", own->maximum / other->maximum)
                                  : formatted("%.2f", own->minimum / other->minimum);
    }
    const bool is_time = row.figure == &Sample::wall_ms;
    const auto count = [&](const std::string& name) {
        const double counted = is_time ? calls(report, name) : 0;
        return counted > 0 ? formatted("%.0f", counted) : std::string("-");
    };
    const auto thousands = [&](const std::string& name) {
        const double counted = is_time ? instructions(report, name) : -1;
        return counted > 0 ? formatted("%.0f k", counted / 1e3) : std::string("-");
    };
    cells.own_calls = count(row.own);
    cells.other_calls = count(row.other);
    cells.own_instructions = thousands(row.own);
    cells.other_instructions = thousands(row.other);
    return cells;
}

std::string padded(std::string text, size_t width, bool left = false) {
    const size_t length = static_cast<size_t>(
        std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
    const std::string blanks(width > length ? width - length : 0, ' ');
    return left ? text + blanks : blanks + text;
}

std::string table_line(const std::string& title, const std::string& against, const Cells& cells) {
    return concat(padded(title, 36, true), padded(against, 14, true), padded(cells.own, 11), padded(cells.other, 11),
                  padded(cells.ratio, 7), padded(cells.best, 7), padded(cells.spread, 17), padded(cells.own_calls, 7),
                  padded(cells.other_calls, 7), padded(cells.own_instructions, 10),
                  padded(cells.other_instructions, 10), "\n");
}

std::string json_summary(const Summary& summary) {
    return concat("{\"median\": ", formatted("%.4f", summary.median), ", \"min\": ", formatted("%.4f", summary.minimum),
                  ", \"max\": ", formatted("%.4f", summary.maximum), ", \"p10\": ", formatted("%.4f", summary.p10),
                  ", \"p90\": ", formatted("%.4f", summary.p90), "}");
}

std::string json_series(const Series& series) {
    std::string text = concat("    {\"name\": ", json_quoted(series.scenario.name));
    if (!series.scenario.skip_reason.empty()) {
        return concat(text, ", \"skipped\": ", json_quoted(series.scenario.skip_reason), "}");
    }
    const auto list = [&](const char* name, double Sample::*figure) {
        std::vector<std::string> values;
        for (const Sample& sample : series.samples) values.push_back(formatted("%.4f", sample.*figure));
        text += concat(", ", json_quoted(name), ": [", join(values, ", "), "]");
    };
    text += concat(", \"calls\": ", formatted("%.0f", series.calls));
    list("wall_ms", &Sample::wall_ms);
    list("cpu_ms", &Sample::cpu_ms);
    list("memory_kb", &Sample::memory_kb);
    list("runs_per_second", &Sample::rate);
    list("instructions", &Sample::instructions);
    return text + "}";
}

std::string json_row(const Report& report, const Row& row) {
    std::string text = concat("    {\"row\": ", json_quoted(row.title), ", \"against\": ", json_quoted(row.other_name),
                              ", \"unit\": ", json_quoted(row.unit));
    const auto own = figures(report, row, row.own);
    const auto other = figures(report, row, row.other);
    if (own) text += concat(", \"pinfold\": ", json_summary(*own));
    if (other) text += concat(", \"other\": ", json_summary(*other));
    if (own && other) text += concat(", \"ratio\": ", formatted("%.4f", own->median / other->median));
    const std::string reason = why_not(report, row);
    if (!reason.empty()) text += concat(", \"missing\": ", json_quoted(reason));
    return text + "}";
}

}  // namespace

std::vector<Row> list_rows() {
    const auto memory = &Sample::memory_kb;
    const auto rate = &Sample::rate;
    const std::string run = "pinfold: run";
    return {
        {"run /bin/true", run, "crun: run", "crun"},
        {"run /bin/true", run, "new crun: run", "newest crun"},
        {"run /bin/true", run, "bwrap: run", "bwrap"},
        {"run /bin/true", run, "floor: run", "floor"},
        {"run with a cgroup", "pinfold: run with a cgroup", "crun: run with a cgroup", "crun"},
        {"run with a cgroup", "pinfold: run with a cgroup", "runc: run with a cgroup", "runc"},
        {"run with a cgroup", "pinfold: run with a cgroup", "floor: run with a cgroup", "floor"},
        {"create, start, delete", "pinfold: create, start, delete", "crun: create, start, delete", "crun"},
        {"exec /bin/true", "pinfold: exec", "crun: exec", "crun"},
        {"--version", "pinfold: --version", "hello", "static hello"},
        {"run with Docker's seccomp profile", "pinfold: run with Docker's seccomp profile", run, "run without"},
        {"sandbox true, by a normal user", "pinfold: sandbox by a normal user", "bwrap: sandbox by a normal user",
         "bwrap"},
        {"sandbox true, by root", "pinfold: sandbox by root", "bwrap: sandbox by root", "bwrap"},
        {"sandbox python3, by a normal user", "pinfold: sandbox with python", "bwrap: sandbox with python", "bwrap"},
        {"run, 8 at once", "pinfold: run, 8 at once", "crun: run, 8 at once", "crun", rate, "/s"},
        {"run, 8 at once", "pinfold: run, 8 at once", "floor: run, 8 at once", "floor", rate, "/s"},
        {"300 sandboxes at once", "pinfold: 300 sandboxes at once", "", "", &Sample::wall_ms, "s", 1e-3},
        {"1000 sandboxes at once", "pinfold: 1000 sandboxes at once", "", "", &Sample::wall_ms, "s", 1e-3},
        {"list 1000 containers", "pinfold: list", "crun: list", "crun"},
        {"peak memory of run", run, "crun: run", "crun", memory, "KiB"},
        {"smallest memory limit", "pinfold: smallest memory limit", "crun: smallest memory limit", "crun", memory,
         "KiB"},
        {"memory of a waiting container", "pinfold: waits", "crun: waits", "crun", memory, "KiB"},
    };
}

std::optional<Summary> figures(const Report& report, const Row& row, const std::string& scenario) {
    const Series* series = find(report, scenario);
    if (series == nullptr || series->samples.empty()) return std::nullopt;
    return summarize(values_of(*series, row.figure, row.scale));
}

bool is_rate(const Row& row) { return row.figure == &Sample::rate; }

std::string formatted(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string machine() {
    utsname kernel{};
    ::uname(&kernel);
    const std::time_t now = std::time(nullptr);
    std::tm day{};
    char date[32];
    std::strftime(date, sizeof date, "%Y-%m-%d", ::gmtime_r(&now, &day));
    return concat("Linux ", kernel.release, " ", kernel.machine, ", ", ::sysconf(_SC_NPROCESSORS_ONLN), " processors, ",
                  date);
}

std::string as_table(const Report& report) {
    std::string text = concat(machine(), "; ", report.rounds, " rounds, order shuffled in each\n");
    for (const std::string& note : report.notes) text += concat("note: ", note, "\n");
    text += "medians; ratio: pinfold by the other, of medians and of the best; spread: pinfold's 10 % to 90 %\n\n";
    const Cells head{"pinfold", "other", "ratio", "best", "spread", "calls", "other", "instr.", "other"};
    text += table_line("", "against", head);
    for (const Row& row : report.rows) {
        text += table_line(row.title, row.other_name, cells_of(report, row));
        const std::string reason = why_not(report, row);
        if (!reason.empty()) text += concat("  ", reason, "\n");
    }
    return text;
}

std::string as_markdown(const Report& report) {
    std::string text =
        concat("| | pinfold | against | | ratio | system calls |\n| --- | ---: | --- | ---: | ---: | ---: |\n");
    for (const Row& row : report.rows) {
        if (!figures(report, row, row.own)) continue;
        const Cells cells = cells_of(report, row);
        text += concat("| ", row.title, " | ", cells.own, " | ", row.other_name, " | ", cells.other, " | ", cells.ratio,
                       " | ", cells.own_calls, cells.other_calls == "-" ? "" : " / " + cells.other_calls, " |\n");
    }
    text += concat("\n", machine(), "; medians of ", report.rounds, " rounds.");
    return concat(text, report.notes.empty() ? "" : concat(" ", report.notes.front(), "."), "\n");
}

std::string as_json(const Report& report) {
    std::vector<std::string> rows;
    std::vector<std::string> series;
    std::vector<std::string> notes;
    for (const Row& row : report.rows) rows.push_back(json_row(report, row));
    for (const Series& one : report.series) series.push_back(json_series(one));
    for (const std::string& note : report.notes) notes.push_back(json_quoted(note));
    return concat("{\n  \"machine\": ", json_quoted(machine()), ",\n  \"rounds\": ", report.rounds, ",\n  \"notes\": [",
                  join(notes, ", "), "],\n  \"rows\": [\n", join(rows, ",\n"), "\n  ],\n  \"scenarios\": [\n",
                  join(series, ",\n"), "\n  ]\n}\n");
}

}  // namespace pinfold::bench
