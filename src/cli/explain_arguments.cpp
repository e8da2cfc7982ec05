// Lines that are not plain: help, mistakes and what was probably meant, and spellings that nobody needs to be quick.
// The only file that knows CLI11, and the wall where its exceptions stop.
#include "cli/explain_arguments.hpp"

// <iostream> has its streams made, with all that a locale is made of, at each start of a program. CLI11 wants them only
// as default arguments, which are not used here.
#define _GLIBCXX_IOSTREAM 1  // NOLINT(bugprone-reserved-identifier)
#include <istream>
#include <ostream>
namespace std {
extern ostream cout;  // NOLINT(cert-dcl58-cpp)
extern ostream cerr;  // NOLINT(cert-dcl58-cpp)
}  // namespace std

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/strings.hpp"
#include "cli/option_table.hpp"
#include "cli/version.hpp"
#include "state/store.hpp"

namespace pinfold {

namespace {

template <class Value>
CLI::Option* add(CLI::App& app, const Option& option, Value* out) {
    return app.add_option(option.names, *out, option.purpose);
}

CLI::Option* add(CLI::App& app, const Option& option, bool* out) {
    return app.add_flag(option.names, *out, option.purpose);
}

template <class Value>
CLI::Option* add(CLI::App& app, const Option& option, std::vector<Value>* out) {
    return app.add_option(option.names, *out, option.purpose)->take_all()->allow_extra_args(false);
}

template <class Out, class In>
CLI::Option* add(CLI::App& app, const Option& option, const OneOf<Out, In>& choice) {
    std::vector<std::string> words;
    for (const auto& [word, value] : choice.words) words.emplace_back(word);
    const auto choose = [choice](const std::string& chosen) {
        *choice.out = std::ranges::find(choice.words, chosen, &std::pair<const char*, In>::first)->second;
    };
    return app.add_option_function<std::string>(option.names, choose, option.purpose)
        ->check(CLI::IsMember(std::move(words)))
        ->type_name("");
}

void add_options(CLI::App& app, const std::vector<Option>& options) {
    for (const Option& option : options) {
        CLI::Option* const added = std::visit([&](const auto& out) { return add(app, option, out); }, option.value);
        if (*option.type != '\0') added->type_name(option.type);
        if (option.is_required) added->required();
        if (option.shows_default) added->capture_default_str();
        if (bool* const clears = option.clears) added->each([clears](const std::string&) { *clears = false; });
    }
}

// The verbs that CLI11 was told of, each with the table that its words go to.
using Tables = std::vector<std::pair<const CLI::App*, OptionTable>>;

// The words that are another program's are no option of CLI11's, and in no list of its own.
class ProgramHelp : public CLI::Formatter {
public:
    explicit ProgramHelp(bool are_options)
        : words_(are_options ? " [PS-OPTION...]" : " [--] [COMMAND [ARGUMENT...]]") {}

    std::string make_usage(const CLI::App* app, std::string name) const override {
        std::string usage = CLI::Formatter::make_usage(app, std::move(name));
        usage.insert(std::min(usage.find('\n'), usage.size()), words_);
        return usage;
    }

private:
    const char* words_;
};

void add_verb(CLI::App& above, const Verb& verb, Tables& tables) {
    CLI::App& app = *above.add_subcommand(verb.name, verb.purpose);
    if (!verb.below.empty()) app.require_subcommand(1);
    for (const Verb& below : verb.below) add_verb(app, below, tables);
    if (!verb.below.empty()) return;
    OptionTable table = verb.declare();
    add_options(app, table.options);
    if (table.args != nullptr) app.prefix_command()->allow_extras();
    if (table.args != nullptr) app.formatter(std::make_shared<ProgramHelp>(table.args_are_options));
    tables.emplace_back(&app, std::move(table));
}

// CLI11 takes its time for what is not used: only the verbs that the arguments name, or all where they name none.
Tables add_verbs(CLI::App& app, const std::vector<std::string_view>& words) {
    const auto is_named = [&](const Verb& verb) { return std::ranges::find(words, verb.name) != words.end(); };
    const bool any = std::ranges::any_of(all_verbs(), is_named);
    Tables tables;
    for (const Verb& verb : all_verbs()) {
        if (!any || is_named(verb)) add_verb(app, verb, tables);
    }
    return tables;
}

// CLI11 takes "--" for the end of a verb that has no more positional arguments, and what follows for its parent's. So
// the first one is put as a word that nobody writes, with which another program's arguments may well begin.
constexpr const char* kMark = "\x01--";

bool has_mark(int argc, char** argv) { return std::find(argv, argv + argc, std::string_view(kMark)) != argv + argc; }

std::vector<std::string> mark_end_of_options(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (const auto end = std::ranges::find(words, "--"); end != words.end()) *end = kMark;
    return words;
}

std::vector<std::string> without_mark(std::vector<std::string> words) {
    const auto mark = std::ranges::find(words, kMark);
    if (mark == words.begin() && mark != words.end()) words.erase(mark);
    else if (mark != words.end()) *mark = "--";
    return words;
}

// "run", or of a verb below a verb, "seccomp show".
std::string words_of(const CLI::App& verb) {
    const CLI::App* above = verb.get_parent();
    return above->get_parent() ? concat(above->get_name(), " ", verb.get_name()) : verb.get_name();
}

// How many letters have to be put in, left out or replaced to make one word of the other.
size_t edit_distance(std::string_view one, std::string_view other) {
    std::vector<size_t> row(other.size() + 1);
    for (size_t j = 0; j < row.size(); ++j) row[j] = j;
    for (size_t i = 0; i < one.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i + 1);
        for (size_t j = 0; j < other.size(); ++j) {
            const size_t replaced = diagonal + (one[i] == other[j] ? 0 : 1);
            diagonal = std::exchange(row[j + 1], std::min({replaced, row[j] + 1, row[j + 1] + 1}));
        }
    }
    return row[other.size()];
}

std::string_view without_dashes(std::string_view word) {
    return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

// The word that was probably meant, or nothing.
std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    word = without_dashes(word);
    size_t least = word.size() < 3 ? 1 : std::min<size_t>(word.size() / 2, 2) + 1;
    std::string best;
    for (const std::string& one : known) {
        const size_t distance = edit_distance(word, without_dashes(one));
        if (distance < least) best = one;
        least = std::min(least, distance);
    }
    return best;
}

std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
}

// The verb that the words got to; the program itself where they did not name one.
const CLI::App& verb_of(const CLI::App& app) {
    const std::vector<CLI::App*> named = app.get_subcommands();
    return named.empty() ? app : verb_of(*named.back());
}

std::string help_of(const CLI::App& verb) {
    return concat("pinfold ", verb.get_parent() ? words_of(verb) + " " : "", "--help lists what there is");
}

std::string meant_or_help(const std::string& meant, const CLI::App& verb) {
    return meant.empty() ? help_of(verb) : concat("did you mean ", meant, "?");
}

// `at` is where the option stands: the verb, or before it the program itself.
Error unknown_option(const std::string& word, const CLI::App& at, const CLI::App& app, const CLI::App& verb) {
    const std::string name = word.substr(0, word.find('='));
    Error error = plain_error(concat("unknown option ", pinfold::quoted(name)));
    if (&at != &app && app.get_option_no_throw(name) != nullptr)
        return std::move(error).with_hint("it is one of the global options: put it before the verb");
    if (&at == &app && verb.get_option_no_throw(name) != nullptr)
        return std::move(error).with_hint(concat("it is an option of ", words_of(verb), ": put it behind the verb"));
    return std::move(error).with_hint(meant_or_help(nearest(name, option_names(at)), at));
}

Error unknown_verb(const std::string& word, const CLI::App& above) {
    std::vector<std::string> known;
    if (above.get_parent() == nullptr) {
        known = {"--help", "--version"};
        for (const Verb& verb : all_verbs()) known.push_back(verb.name);
    } else {
        for (const CLI::App* verb : above.get_subcommands([](const CLI::App*) { return true; }))
            known.push_back(verb->get_name());
    }
    return plain_error(concat("unknown verb ", pinfold::quoted(word)))
        .with_hint(meant_or_help(nearest(word, known), above));
}

// An empty one is none, as it is for runc, and its callers may rely on that. Any other option with an empty value, a
// deadline or a policy from a variable that was never set, would go without what was asked for.
constexpr std::string_view kMayBeEmpty[] = {"--root",     "--log",      "--console-socket", "--pidfd-socket",
                                            "--pid-file", "--apparmor", "--process-label",  "--user",
                                            "--cwd",      "--env",      "--cgroup"};

// One whose value is empty, or that has taken the end of the options for it.
const CLI::Option* option_without_value(const CLI::App& app) {
    for (const CLI::Option* option : app.get_options()) {
        const std::string name = option->get_name();
        // No other runtime has sandboxes; that an empty variable has no name is told by who reads it.
        const bool is_ours = app.get_name() == "sandbox" && name != "--env";
        const bool may_be_empty = !is_ours && std::ranges::find(kMayBeEmpty, name) != std::end(kMayBeEmpty);
        for (const std::string& value : option->results()) {
            if (value == kMark || (value.empty() && !may_be_empty)) return option;
        }
    }
    return nullptr;
}

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// A value that CLI11 refuses: "--log-format: jsn not in {json,text}", "Could not convert: --cpus = zero".
Error wrong_value(std::string complaint, const CLI::App& app, const CLI::App& verb) {
    constexpr std::string_view kNumber = "Could not convert: ";
    const bool is_number = complaint.starts_with(kNumber);
    if (is_number) complaint.erase(0, kNumber.size());
    const std::string name = complaint.substr(0, complaint.find_first_of(": "));
    const CLI::Option* own = verb.get_option_no_throw(name);
    const CLI::Option* option = own != nullptr ? own : app.get_option_no_throw(name);
    const size_t value = complaint.find(" = ");
    if (is_number && option != nullptr && value != complaint.npos) {
        complaint = concat(name, ' ', pinfold::quoted(complaint.substr(value + 3)),
                           ": expected a number: ", option->get_description());
    }
    return plain_error(complaint).with_hint(help_of(own == nullptr && option != nullptr ? app : verb));
}

Error lacks_value(const CLI::Option& option, const CLI::App& verb) {
    const std::string name = option.get_name();
    const bool is_place = option.get_positional() && !option.results().empty() && option.results().back() == kMark;
    if (!is_place) return plain_error(concat(name, " needs a value")).with_hint(help_of(verb));
    return plain_error(concat(name, " is expected before --"))
        .with_hint(concat("put -- behind it: pinfold ", words_of(verb), ' ', name, " -- ..."));
}

// What is wrong with the words, in ours where CLI11's do not help.
Error mistake(const CLI::App& app, const std::string& complaint) {
    const CLI::App& verb = verb_of(app);
    for (const CLI::App* one : {&verb, &app}) {
        if (const CLI::Option* option = option_without_value(*one)) return lacks_value(*option, verb);
    }
    for (const CLI::App* at : {&verb, &app}) {
        const std::vector<std::string> words = at->remaining();
        if (words.empty()) continue;
        if (is_option(words[0])) return unknown_option(words[0], *at, app, verb);
        if (at->get_require_subcommand_min() > 0 && words[0] != kMark) return unknown_verb(words[0], *at);
    }
    if (verb.get_require_subcommand_min() > 0) return plain_error("a verb is required").with_hint(help_of(verb));
    return wrong_value(complaint, app, verb);
}

// One that has taken the end of the options has none.
std::string last_value(const CLI::App& app, const char* name) {
    const CLI::Option* option = app.get_option_no_throw(name);
    const std::string value = option == nullptr || option->empty() ? "" : option->results().back();
    return value == kMark ? "" : value;
}

// What --result names, also behind a mistyped option. But not where that may have been the program's: a word that could
// be its name ends the search, unless it is the value of what was probably meant.
std::string named_result(const CLI::App& verb) {
    std::string result = last_value(verb, "--result");
    if (verb.get_option_no_throw("--result") == nullptr) return result;
    const std::vector<std::string> words = verb.remaining();
    for (size_t i = 0; i < words.size() && is_option(words[i]); ++i) {
        const size_t equals = words[i].find('=');
        const std::string name = words[i].substr(0, equals);
        const CLI::Option* option = verb.get_option_no_throw(name);
        if (option == nullptr) option = verb.get_option_no_throw(nearest(name, option_names(verb)));
        std::string value = equals == name.npos ? "" : words[i].substr(equals + 1);
        const bool takes_next = equals == name.npos && option != nullptr && option->get_expected_max() > 0;
        if (takes_next && i + 1 < words.size()) value = words[++i];
        if (name == "--result" && value != kMark) result = value;
    }
    return result;
}

// A line whose verb is to fail: so main tells of it as of any failure, and takes through the gate what it writes to.
void fail_with(Error error, const CLI::App& app, CommandLine& line) {
    const CLI::App& verb = verb_of(app);
    auto result = std::make_shared<std::string>(named_result(verb));
    line.words = verb.get_parent() ? words_of(verb) : "";
    line.title = line.words;
    line.target.clear();
    line.failure = failure_of(line.words);
    line.global = {};
    line.global.root = default_state_root();
    line.global.log = {.file = last_value(app, "--log"), .json = last_value(app, "--log-format") == "json"};
    line.global.policy = last_value(app, "--policy");
    line.verb = {};
    line.verb.add("--log", line.global.log.file, "", "").gate(PathUse::append);
    line.verb.add("--result", *result, "", "").gate(PathUse::entry);
    line.verb.result = result.get();
    line.verb.call = [error = std::move(error), result](const CommandLine&) -> Result<int> { return error; };
}

int print_answer(const CLI::App& app, const CLI::Success& answer) {
    std::ostringstream out;
    app.exit(answer, out, out);
    const Result<void> printed = print(out.str());
    if (!printed) log_error(printed.error());
    return printed ? 0 : 1;
}

// Hands the words of a line that CLI11 has understood to its verb. False: an option, probably, where a program's name
// should be; ps(1) alone is called with options only.
bool complete_from(const CLI::App& verb, OptionTable& global, Tables& tables, CommandLine& line) {
    const auto named = std::ranges::find(tables, &verb, &Tables::value_type::first);
    OptionTable& table = named->second;
    const std::vector<std::string> words = verb.remaining();
    if (!words.empty() && is_option(words[0]) && !table.args_are_options) return false;
    if (table.args != nullptr) *table.args = without_mark(words);
    complete(line, words_of(verb), std::move(global), std::move(table));
    return true;
}

}  // namespace

std::optional<int> explain_arguments(int argc, char** argv, CommandLine& line) {
    line.argv = argv;
    CLI::App app("a sandbox for code that is not trusted: an OCI runtime without a daemon", "pinfold");
    app.set_version_flag("-v,--version", kVersionText);
    app.require_subcommand(1);
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    OptionTable global = global_options(line.global);
    add_options(app, global.options);
    Tables tables = add_verbs(app, {argv + 1, argv + argc});
    try {
        std::vector<std::string> words = mark_end_of_options(argc, argv);
        std::ranges::reverse(words);  // as CLI11 wants them
        app.parse(std::move(words));
        const CLI::App& verb = verb_of(app);
        const bool lacks_value = option_without_value(app) || option_without_value(verb);
        if (lacks_value || !complete_from(verb, global, tables, line)) fail_with(mistake(app, ""), app, line);
        if (has_mark(argc, argv))
            fail_with(plain_error("a word with a control character in front of -- is not understood"), app, line);
    } catch (const CLI::Success& answer) {
        return print_answer(app, answer);
    } catch (const CLI::ParseError& error) {
        fail_with(mistake(app, error.what()), app, line);
    }
    return std::nullopt;
}

}  // namespace pinfold
