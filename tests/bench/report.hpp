// The benchmark's results: as a table for people, in Markdown for the README, as JSON for programs, as a plot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "scenarios.hpp"

namespace pinfold::bench {

struct Series {
    Scenario scenario;
    std::vector<Sample> samples;
    double calls = 0;  // system calls of one run; 0: not counted
};

// One line of the table: what pinfold takes, and what the other takes for the same.
struct Row {
    std::string title;
    std::string own;    // names of scenarios
    std::string other;  // empty: it is compared with nothing
    std::string other_name;
    double Sample::*figure = &Sample::wall_ms;
    std::string unit = "ms";
    double scale = 1;  // from the figure to the unit
};

std::vector<Row> list_rows();

struct Report {
    std::vector<Row> rows;
    std::vector<Series> series;
    std::vector<std::string> notes;
    int rounds = 0;
};

std::string as_table(const Report& report);
std::string as_markdown(const Report& report);
std::string as_json(const Report& report);
std::string as_svg(const Report& report);

// What a row says of one side, in the row's unit. Empty where it was not measured.
std::optional<Summary> figures(const Report& report, const Row& row, const std::string& scenario);
// More of it is better.
bool is_rate(const Row& row);
// "Linux 6.1.0 x86_64, 2 processors" and the day.
std::string machine();
// "%8.2f" and the like for one number.
std::string formatted(const char* format, double value);

}  // namespace pinfold::bench
