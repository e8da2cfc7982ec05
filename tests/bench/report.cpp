// The benchmark's results, as a table for people and as JSON for programs.
#include "report.hpp"

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "base/strings.hpp"

namespace pinfold::bench {

namespace {

struct Row {
    std::string name;
    Summary wall_ms;
    double cpu_ms = 0;
    long max_rss_kb = 0;
};

Row make_row(const Series& series) {
    Row row{series.variant.name, {}, 0, 0};
    std::vector<double> wall;
    std::vector<double> cpu;
    for (const Sample& sample : series.samples) {
        wall.push_back(sample.wall_ms);
        cpu.push_back(sample.cpu_ms);
        row.max_rss_kb = std::max(row.max_rss_kb, sample.max_rss_kb);
    }
    row.wall_ms = summarize(wall);
    row.cpu_ms = summarize(cpu).median;
    return row;
}

std::vector<Row> rows_of(const Report& report, bool cgroup) {
    std::vector<Row> rows;
    for (const Series& series : report.series) {
        if (series.variant.cgroup == cgroup && !series.samples.empty()) rows.push_back(make_row(series));
    }
    return rows;
}

std::optional<Summary> baseline(const std::vector<Row>& rows, std::string_view name) {
    for (const Row& row : rows) {
        if (row.name == name) return row.wall_ms;
    }
    return std::nullopt;
}

// "0.42 /  0.40": of medians and of minima.
std::string ratios(const Summary& own, const std::optional<Summary>& base) {
    if (!base) return "     - /     -";
    return formatted("%6.2f", own.median / base->median) + formatted(" /%6.2f", own.minimum / base->minimum);
}

std::string table_part(const Report& report, bool cgroup) {
    const std::vector<Row> rows = rows_of(report, cgroup);
    if (rows.empty()) return "";
    const auto crun = baseline(rows, cgroup ? "crun+cgroup" : "crun");
    const auto floor = baseline(rows, cgroup ? "floor+cgroup" : "floor");
    std::string text =
        concat("\n", cgroup ? "with a cgroup   " : "without cgroups ",
               " median ms      min      p90    x crun med/min   x floor med/min   cpu ms  max RSS kB\n");
    for (const Row& row : rows) {
        std::string name = row.name;
        name.resize(16, ' ');
        text += name + formatted("%10.3f", row.wall_ms.median) + formatted("%9.3f", row.wall_ms.minimum) +
                formatted("%9.3f", row.wall_ms.p90) + "    " + ratios(row.wall_ms, crun) + "    " +
                ratios(row.wall_ms, floor) + formatted("%9.2f", row.cpu_ms) +
                formatted("%12.0f", static_cast<double>(row.max_rss_kb)) + "\n";
    }
    return text;
}

std::string machine() {
    utsname kernel{};
    ::uname(&kernel);
    return concat("Linux ", kernel.release, " ", kernel.machine, ", ", ::sysconf(_SC_NPROCESSORS_ONLN), " processors");
}

std::vector<std::pair<std::string, int64_t>> binary_sizes(const Report& report) {
    std::vector<std::pair<std::string, int64_t>> sizes;
    std::set<std::string> seen;
    for (const Series& series : report.series) {
        struct stat info {};
        const std::string& program = series.variant.program;
        if (::stat(program.c_str(), &info) == 0 && seen.insert(program).second)
            sizes.emplace_back(program, info.st_size);
    }
    return sizes;
}

std::string json_series(const Series& series) {
    const Row row = make_row(series);
    std::string text =
        concat("{\"name\": ", json_quoted(row.name), ", \"cgroup\": ", series.variant.cgroup ? "true" : "false");
    if (!series.variant.skip_reason.empty()) {
        return concat(text, ", \"skipped\": ", json_quoted(series.variant.skip_reason), "}");
    }
    text += concat(", \"wall_ms\": {\"median\": ", formatted("%.4f", row.wall_ms.median),
                   ", \"min\": ", formatted("%.4f", row.wall_ms.minimum),
                   ", \"p90\": ", formatted("%.4f", row.wall_ms.p90), "}, \"cpu_ms\": ", formatted("%.3f", row.cpu_ms),
                   ", \"max_rss_kb\": ", row.max_rss_kb, ", \"samples_ms\": [");
    for (std::size_t i = 0; i < series.samples.size(); i++) {
        text += (i == 0 ? "" : ", ") + formatted("%.4f", series.samples[i].wall_ms);
    }
    return text + "]}";
}

}  // namespace

std::string formatted(const char* format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string as_table(const Report& report) {
    std::string text = concat(machine(), "; ", report.rounds, " rounds, order shuffled in each\n");
    for (const std::string& note : report.notes) text += concat("note: ", note, "\n");
    text += table_part(report, false) + table_part(report, true);
    text += "\nbinary size kB:\n";
    for (const auto& [program, size] : binary_sizes(report)) {
        text += formatted("%8.0f  ", static_cast<double>(size) / 1024) + program + "\n";
    }
    for (const Series& series : report.series) {
        const Variant& variant = series.variant;
        if (!variant.skip_reason.empty()) text += concat("skipped: ", variant.name, ": ", variant.skip_reason, "\n");
    }
    return text;
}

std::string as_json(const Report& report) {
    std::vector<std::string> series;
    std::vector<std::string> notes;
    std::vector<std::string> sizes;
    for (const Series& one : report.series) series.push_back("    " + json_series(one));
    for (const std::string& note : report.notes) notes.push_back(json_quoted(note));
    for (const auto& [program, size] : binary_sizes(report)) sizes.push_back(concat(json_quoted(program), ": ", size));
    return concat("{\n  \"machine\": ", json_quoted(machine()), ",\n  \"rounds\": ", report.rounds, ",\n  \"notes\": [",
                  join(notes, ", "), "],\n  \"binary_bytes\": {", join(sizes, ", "), "},\n  \"variants\": [\n",
                  join(series, ",\n"), "\n  ]\n}\n");
}

}  // namespace pinfold::bench
