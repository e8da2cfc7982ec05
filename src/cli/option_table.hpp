// The options of a verb as a table. Whoever reads a command line, prints help or tells what was probably meant reads
// the same one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cgroup/plan.hpp"
#include "pinfold/result.hpp"
#include "policy/gate.hpp"

namespace pinfold {

struct CommandLine;
struct GlobalOptions;

// One of a few words.
template <class Out, class In>
struct OneOf {
    Out* out;
    std::span<const std::pair<const char*, In>> words;
};

// Where the value goes. bool*: there is none, the option itself says so.
using OptionValue = std::variant<std::string*, bool*, std::vector<std::string>*, std::vector<uint32_t>*, unsigned*,
                                 uint64_t*, std::optional<uint64_t>*, std::optional<int64_t>*, std::optional<uint16_t>*,
                                 std::optional<double>*, OneOf<bool, bool>, OneOf<CgroupManager, CgroupManager>,
                                 OneOf<std::optional<bool>, std::optional<bool>>, OneOf<std::string, const char*>>;

struct Option {
    const char* names;  // "-b,--bundle"; "--strict,!--no-strict"; without dashes the place of an argument: "ID"
    OptionValue value;
    const char* type;  // of the value, for the help: "DIR"; empty: none that helps
    const char* purpose;
    bool is_required = false;
    bool shows_default = false;
    std::optional<PathUse> path;  // it names something of the host's: main takes it through the gate, before the verb
    bool may_be_inside = false;   // or, as ID:PATH, something of a container's
    bool* clears = nullptr;       // becomes false, once the option is given

    // The last of them.
    std::string_view name() const {
        const std::string_view all = names;
        return all.substr(all.rfind(',') + 1);
    }

    Option& require() { return is_required = true, *this; }
    Option& show_default() { return shows_default = true, *this; }
    Option& gate(PathUse use) { return path = use, *this; }
    Option& or_inside() { return may_be_inside = true, *this; }
    Option& clear(bool& other) { return clears = &other, *this; }
};

// What a verb understands, bound to the values that it is called with.
struct OptionTable {
    std::vector<Option> options;
    std::vector<std::string>* args = nullptr;  // from the first word that is no option on, another program's
    bool args_are_options = false;             // of a program that is called with options alone
    const std::string* id = nullptr;           // of the container
    std::string* result = nullptr;             // what --result names
    std::function<Result<int>(const CommandLine&)> call;

    template <class Value>
    Option& add(const char* names, Value& out, const char* type, const char* purpose) {
        return options.emplace_back(Option{names, &out, type, purpose});
    }
    Option& flag(const char* names, bool& out, const char* purpose) { return add(names, out, "", purpose); }
    Option& place(const char* name, std::string& out, const char* purpose) { return add(name, out, "", purpose); }
    template <class Out, class In, size_t count>
    Option& choice(const char* names, Out& out, const std::pair<const char*, In> (&words)[count], const char* purpose) {
        return options.emplace_back(Option{names, OneOf<Out, In>{&out, words}, "", purpose});
    }
};

struct Verb {
    const char* name;
    const char* purpose;
    OptionTable (*declare)();
    std::span<const Verb> below;  // "show" of "seccomp", which then has no options
};

std::span<const Verb> all_verbs();
OptionTable global_options(GlobalOptions& to);

// The exit code that says that the verb has failed.
int failure_of(std::string_view words);

// Tells main of a line whose values are in their places. Words: "run", "seccomp show".
void complete(CommandLine& line, std::string words, OptionTable global, OptionTable verb);

}  // namespace pinfold
