// The plot: one bar for each row, as long as what pinfold takes for each unit of what the other takes.
#include <algorithm>

#include "base/strings.hpp"
#include "report.hpp"

namespace pinfold::bench {

namespace {

constexpr double kLabelWidth = 350;
constexpr double kBarWidth = 300;  // of a ratio of kLongest
constexpr double kLongest = 1.5;   // longer bars are cut, and their number tells
constexpr double kTextWidth = 170;
constexpr double kRowHeight = 24;
constexpr double kHead = 34;

// Where a page is shown dark, so is the plot.
constexpr const char* kStyle =
    "<style>text{font:13px system-ui,sans-serif;fill:#1f2328}.faint{fill:#59636e}.better{fill:#2f81c7}"
    ".worse{fill:#d0782a}line{stroke:#8c959f}"
    "@media (prefers-color-scheme: dark){text{fill:#e6edf3}.faint{fill:#9aa4af}.better{fill:#4d9fe0}"
    ".worse{fill:#e0954f}}</style>\n";

std::string attribute(const char* name, double value) {
    return concat(" ", name, "=\"", formatted("%.1f", value), "\"");
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
    return out;
}

std::string text_at(double x, double y, std::string_view words, std::string_view more = "") {
    return concat("<text", attribute("x", x), attribute("y", y), more, ">", escaped(words), "</text>\n");
}

std::string vertical_line(double x, double bottom) {
    return concat("<line", attribute("x1", x), attribute("x2", x), attribute("y1", kHead - 6), attribute("y2", bottom),
                  " stroke-dasharray=\"3 3\"/>\n");
}

std::string short_number(double value) { return formatted(value < 100 ? "%.3g" : "%.0f", value); }

// Of runs per second more is better: the plot shows the time that one takes.
std::string bar(const Row& row, const Summary& own, const Summary& other, double y) {
    const double ratio = is_rate(row) ? other.median / own.median : own.median / other.median;
    const double width = std::max(1.0, std::min(ratio, kLongest) / kLongest * kBarWidth);
    const std::string title = concat(row.title, " / ", row.other_name);
    const std::string numbers = concat(short_number(own.median), " / ", short_number(other.median), " ", row.unit);
    return concat(text_at(kLabelWidth - 10, y + 16, title, " text-anchor=\"end\""), "<rect",
                  attribute("x", kLabelWidth), attribute("y", y + 4), attribute("width", width),
                  attribute("height", kRowHeight - 8), " rx=\"2\" class=\"", ratio <= 1 ? "better" : "worse", "\"/>\n",
                  text_at(kLabelWidth + width + 6, y + 16, formatted("%.2f", ratio)),
                  text_at(kLabelWidth + kBarWidth + 45, y + 16, numbers, " class=\"faint\""));
}

}  // namespace

std::string as_svg(const Report& report) {
    std::string bars;
    double y = kHead;
    for (const Row& row : report.rows) {
        const auto own = figures(report, row, row.own);
        const auto other = figures(report, row, row.other);
        if (!own || !other || own->median <= 0 || other->median <= 0) continue;
        bars += bar(row, *own, *other, y);
        y += kRowHeight;
    }
    const double one = kLabelWidth + kBarWidth / kLongest;
    const double width = kLabelWidth + kBarWidth + 45 + kTextWidth;
    const std::string size = concat(formatted("%.0f", width), " ", formatted("%.0f", y + 30));
    return concat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", size, "\" width=\"",
                  formatted("%.0f", width), "\">\n<title>pinfold by others: shorter is better</title>\n", kStyle,
                  vertical_line(one, y), bars,
                  text_at(one, 18, "1 = the other; shorter is better", " text-anchor=\"middle\""),
                  text_at(10, y + 20, machine(), " class=\"faint\""), "</svg>\n");
}

}  // namespace pinfold::bench
