// Lines that are read from the table alone, and the same lines read by CLI11: whatever the first understands, the
// second understands in the same way. And the first understands all that engines and scripts write.
#include <random>

#include "cli/explain_arguments.hpp"
#include "cli/parse_arguments.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using Words = std::vector<std::string>;

namespace {

template <class Value>
std::string shown(const Value& value) {
    if constexpr (std::same_as<Value, std::string>) return "'" + value + "'";
    else if constexpr (std::is_enum_v<Value>) return std::to_string(static_cast<int>(value));
    else if constexpr (requires { value.has_value(); }) return value ? shown(*value) : "none";
    else if constexpr (requires { value.begin(); }) {
        std::string all;
        for (const auto& one : value) all += shown(one) + ",";
        return "[" + all + "]";
    } else return std::to_string(value);
}

std::string shown(const Option& option) {
    const auto show = [](const auto& out) {
        if constexpr (requires { out.words; }) return shown(*out.out);
        else return shown(*out);
    };
    return std::string(option.names) + "=" + std::visit(show, option.value) + (option.path ? " is a path" : "");
}

// All that a line says to main and to its verb.
std::string shown(const CommandLine& line) {
    std::string all = line.words + "; " + line.title + "; " + line.target + "; " + std::to_string(line.failure) +
                      "; default root: " + std::to_string(line.global.root_is_default);
    for (const Option& option : line.verb.options) all += "\n" + shown(option);
    if (line.verb.args != nullptr) all += "\nargs=" + shown(*line.verb.args);
    return all + "\nresult " + (line.verb.result != nullptr ? *line.verb.result : "of none");
}

// The two readings of one line. Empty: not understood, or not asked for.
struct Readings {
    std::string plain;
    std::string by_cli11;
};

// A line that CLI11 does not understand has a verb that fails, and no option but those that are needed to tell of it.
bool is_mistake(const CommandLine& line) { return line.verb.options.size() == 2; }

Readings read(const Words& words) {
    Words all = words;
    all.insert(all.begin(), "pinfold");
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int argc = static_cast<int>(all.size());
    CommandLine plain, other;
    Readings readings;
    if (!parse_plain(argc, argv.data(), plain)) return {};  // it is CLI11's then, and nothing is to be compared
    readings.plain = shown(plain);
    const std::optional<int> answer = explain_arguments(argc, argv.data(), other);
    if (!answer && !is_mistake(other)) readings.by_cli11 = shown(other);
    return readings;
}

std::string joined(const Words& words) {
    std::string all;
    for (const std::string& word : words) all += word + " | ";
    return all;
}

// Makes lines. The same seed makes the same ones.
class Writer {
public:
    explicit Writer(unsigned seed) : random_(seed) {}

    size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
    bool chance(size_t one_in) { return below(one_in) == 0; }

    // One that makes sense, with all of the verb's places.
    Words line(const std::vector<std::pair<std::string, const Verb*>>& verbs) {
        GlobalOptions global;
        Words words;
        for (size_t count = below(3); count > 0; --count) add_option(words, global_options(global).options);
        const auto& [name, verb] = verbs[below(verbs.size())];
        if (const size_t space = name.find(' '); space != name.npos) words.push_back(name.substr(0, space));
        words.emplace_back(verb->name);
        const OptionTable table = verb->declare();
        for (const Option& option : table.options) {
            for (size_t count = below(3); count > 0; --count) add_option(words, table.options);
            if (option.names[0] != '-' && (option.is_required || chance(2))) words.push_back(plain_word());
            if (words.size() > 30) break;
        }
        if (table.args != nullptr) add_program(words);
        return words;
    }

    // Leaves out, doubles, swaps, replaces, splits and glues together.
    void spoil(Words& words) {
        static const char* const kOdd[] = {"",      "-",     "--",  "++",     "-5",      "010",          "0x10",
                                           "{}",    "[a,b]", "%%",  "-1",     "true",    "---",          "--no",
                                           "--=x",  "-d=1",  "1.5", "1e3",    " 7",      "-dq",          "run",
                                           "web:x", "a b",   "-h",  "--help", "--root=", "--debug=false"};
        if (words.empty()) return;
        const size_t at = below(words.size());
        switch (below(6)) {
            case 0: words.erase(words.begin() + long(at)); break;
            case 1: words.insert(words.begin() + long(at), words[below(words.size())]); break;
            case 2: std::swap(words[at], words[below(words.size())]); break;
            case 3: words[at] = kOdd[below(std::size(kOdd))]; break;
            case 4: words.insert(words.begin() + long(at), kOdd[below(std::size(kOdd))]); break;
            default: words[at] += words[below(words.size())].substr(0, 1 + below(3)); break;
        }
    }

private:
    std::string plain_word() {
        static const char* const kPlain[] = {"web", "a.b", "/x/y", "run", "kill", "web:/etc", "-", "x=y", "9", "[a]"};
        return kPlain[below(std::size(kPlain))];
    }

    std::string value_of(const OptionValue& value) {
        if (std::holds_alternative<std::string*>(value)) return chance(8) ? "--bundle" : plain_word();
        if (std::holds_alternative<std::vector<std::string>*>(value)) return plain_word();
        if (std::holds_alternative<std::optional<double>*>(value)) return chance(2) ? "0.5" : "12";
        if (std::holds_alternative<std::optional<int64_t>*>(value)) return chance(2) ? "-1" : "100000";
        return std::visit(
            [this](const auto& out) {
                if constexpr (requires { out.words; }) return std::string(out.words[below(out.words.size())].first);
                else return std::to_string(below(1000));
            },
            value);
    }

    void add_option(Words& words, const std::vector<Option>& options) {
        const Option& option = options[below(options.size())];
        std::string_view names = option.names;
        if (names[0] != '-') return;
        const size_t comma = names.find(',');
        std::string name(comma == names.npos || chance(2) ? names.substr(0, comma) : names.substr(comma + 1));
        if (name[0] == '!') name.erase(0, 1);
        if (std::holds_alternative<bool*>(option.value)) return words.push_back(name);
        const std::string value = value_of(option.value);
        if (name.starts_with("--") && chance(2)) return words.push_back(name + "=" + value);
        words.push_back(name);
        words.push_back(value);
    }

    void add_program(Words& words) {
        if (chance(6)) return;
        if (chance(2)) words.emplace_back("--");
        for (const char* word : {"sh", "-c", "--", "", "--root", "++"}) {
            words.emplace_back(word);
            if (chance(4)) return;
        }
    }

    std::mt19937 random_;
};

// "run", "seccomp show".
std::vector<std::pair<std::string, const Verb*>> verbs_by_name() {
    std::vector<std::pair<std::string, const Verb*>> all;
    for (const Verb& verb : all_verbs()) {
        if (verb.below.empty()) all.emplace_back(verb.name, &verb);
        for (const Verb& below : verb.below) all.emplace_back(std::string(verb.name) + " " + below.name, &below);
    }
    return all;
}

constexpr unsigned kLines = 3000;

}  // namespace

TEST_CASE("plain lines: what engines and scripts write is understood without CLI11, and in the same way") {
    const Words lines[] = {
        {"--root", "/run/docker/runtime-runc/moby", "--log", "/l.json", "--log-format", "json", "create", "--bundle",
         "/b", "--pid-file", "/p", "f00"},
        {"--root=/r", "--systemd-cgroup", "create", "--bundle", "/b", "--pid-file", "/p", "--console-socket", "/s",
         "f00"},
        {"--cgroup-manager", "cgroupfs", "--systemd-cgroup", "--cgroup-manager=disabled", "list"},
        {"--log-format=json", "--log=/l", "start", "f00"},
        {"run", "-d", "--no-pivot", "--no-new-keyring", "--preserve-fds", "2", "--no-subreaper", "-b", "/b", "f00"},
        {"--log-format", "json", "exec", "--process", "/p.json", "--detach", "--pid-file", "/p", "f00"},
        {"exec", "-t", "--cwd", "/", "-e", "A=1", "-e", "B=2", "-u", "0:0", "-g", "5", "--cap", "CAP_KILL", "f00", "sh",
         "-c", ":"},
        {"exec", "f00", "-d", "--", "-sh"},
        {"kill", "--all", "f00", "9"},
        {"kill", "f00", "SIGTERM"},
        {"delete", "--force", "f00"},
        {"state", "f00"},
        {"list", "--format", "json"},
        {"ps", "--format", "json", "f00"},
        {"pause", "f00"},
        {"resume", "f00"},
        {"update", "--resources", "-", "--cpu-quota", "-1", "--blkio-weight", "10", "f00"},
        {"events", "--stats", "--interval=1s", "f00"},
        {"sandbox", "--timeout", "5s", "--cpus", "0.5", "--network=none", "--no-landlock", "--landlock", "--", "sh",
         "--", ""},
        {"sandbox", "--result", "-", "--capture", "--lang", "python", "-"},
        {"seccomp", "show", "default", "--json"},
        {"audit", "verify"},
        {"cp", "-", "web:/x"},
        {"features"},
    };
    for (const Words& words : lines) {
        const Readings readings = read(words);
        CAPTURE(joined(words));
        CHECK_FALSE(readings.plain.empty());
        CHECK(readings.plain == readings.by_cli11);
    }
}

TEST_CASE("plain lines: whatever makes sense by the tables is understood, and in the same way") {
    Writer writer(1);
    const auto verbs = verbs_by_name();
    for (unsigned i = 0; i < kLines; ++i) {
        const Words words = writer.line(verbs);
        const Readings readings = read(words);
        CAPTURE(joined(words));
        CHECK_FALSE(readings.plain.empty());
        CHECK(readings.plain == readings.by_cli11);
    }
}

TEST_CASE("plain lines: what is spoilt is left alone, or makes the same sense to both") {
    Writer writer(std::random_device{}());
    const auto verbs = verbs_by_name();
    unsigned understood = 0;
    for (unsigned i = 0; i < kLines; ++i) {
        Words words = writer.line(verbs);
        for (size_t count = 1 + writer.below(3); count > 0; --count) writer.spoil(words);
        const Readings readings = read(words);
        CAPTURE(joined(words));
        if (readings.plain.empty()) continue;
        ++understood;
        CHECK(readings.plain == readings.by_cli11);
    }
    CHECK(understood > kLines / 20);
}
