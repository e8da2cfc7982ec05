// Programs that run a script: each runs a file of the name that its script gets, with the words that follow.
#include "sandbox/languages.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/fs.hpp"
#include "base/process.hpp"
#include "base/strings.hpp"
#include "support/temp_dir.hpp"
#include "support/testing.hpp"

using namespace pinfold;
using pinfold::testing::TempDir;

namespace {

// A script that prints the first word that it is given.
const std::map<std::string, const char*> kScripts = {
    {"awk", "BEGIN { print ARGV[1]; exit }"},
    {"bash", "[[ -n $1 ]] && echo \"$1\""},
    {"lua", "print(arg[1])"},
    {"node", "console.log(process.argv[2])"},
    {"perl", "print \"$ARGV[0]\\n\""},
    {"php", "<?php echo $argv[1], \"\\n\";"},
    {"python", "import sys\nprint(sys.argv[1])"},
    {"r", "cat(commandArgs(TRUE)[1], '\\n', sep = '')"},
    {"ruby", "puts ARGV[0]"},
    {"sh", "echo \"$1\""},
    {"tcl", "puts [lindex $argv 0]"},
};

bool is_installed(const std::string& program) {
    for (const std::string_view directory : {"/usr/bin", "/bin", "/usr/local/bin"}) {
        if (::access(concat(directory, '/', program).c_str(), X_OK) == 0) return true;
    }
    return false;
}

// What it prints, run in a directory that holds the script under the language's own name for it.
std::string printed_by(const Language& language, const char* script) {
    const TempDir dir;
    std::ofstream(dir.file(std::string(language.file))) << script << '\n';
    std::vector<std::string> words = {"env", "-C", dir.path()};
    const std::vector<std::string> command = script_command(language, std::string(language.file), {"a word"});
    words.insert(words.end(), command.begin(), command.end());
    Result<Pipe> pipe = make_pipe("");
    REQUIRE(pipe);
    const Result<pid_t> pid = spawn(words, pipe->to.get());
    REQUIRE_MESSAGE(pid, pid.error().message);
    pipe->to.reset();
    const Result<std::string> text = read_all(pipe->from.get(), "the output");
    CHECK(reap(*pid) == 0);
    return text ? *text : "";
}

}  // namespace

TEST_CASE("languages: each program that this machine has runs the script") {
    size_t tried = 0;
    for (const auto& one : kScripts) {
        CAPTURE(one.first);
        const Result<Language> language = find_language(one.first);
        REQUIRE_MESSAGE(language, language.error().message);
        if (!is_installed(std::string(language->command.substr(0, language->command.find(' '))))) continue;
        CHECK(printed_by(*language, one.second) == "a word\n");
        ++tried;
    }
    CHECK(tried >= 3);  // no machine is without sh, awk and perl
}

TEST_CASE("languages: an unknown one is answered with those that there are") {
    const Result<Language> unknown = find_language("cobol");
    REQUIRE_FALSE(unknown);
    std::vector<std::string> names;
    for (const auto& [name, script] : kScripts) names.push_back(name);
    CHECK(unknown.error().message.ends_with(concat(": allowed: ", join(names, ", "))));
    CHECK(unknown.error().hint.find("--copy-in") != std::string::npos);
    CHECK_FALSE(find_language(""));
    CHECK_FALSE(find_language("Python"));
}

TEST_CASE("languages: a version is the first number with a dot in it") {
    struct Case {
        const char* printed;
        const char* version;
    };
    for (const Case& one :
         {Case{"mawk 1.3.4 20200120\nCopyright 2008", "1.3.4"},
          Case{"GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)", "5.2.15"},
          Case{"Python 3.11.2\n", "3.11.2"}, Case{"v20.20.2", "20.20.2"},
          Case{"ruby 3.1.2p20 (2022-04-12 revision 4491bb740a)", "3.1.2"}, Case{"Rscript (R) version 4.2.2.", "4.2.2"},
          Case{"in 2022, release 7", ""}, Case{"", ""}}) {
        CAPTURE(one.printed);
        CHECK(version_in(one.printed) == one.version);
    }
}
