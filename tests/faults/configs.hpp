// The configurations that faults are tried on: with all that can be asked for and seen from inside, so that a step
// that was left out shows.
#pragma once

#include "world.hpp"

namespace pinfold::faults {

using integration::Command;

// What the payload asks in every container.
const std::vector<Command>& questions();
// What it asks where there are limits: the files of either version of cgroups; those that are not there say so.
const std::vector<Command>& limit_questions();

void plain(Bundle& bundle);
void limited(Bundle& bundle);
void unfiltered(Bundle& bundle);  // limited; for a deadline, which a filter must allow nobody to escape
void mapped(Bundle& bundle);
void rootless(Bundle& bundle);
void hooked(Bundle& bundle);
void with_terminal(Bundle& bundle);
void listened(Bundle& bundle);
// With few questions: nobody reads the terminal until the verb has ended.
void on_terminal(Bundle& bundle);
void among_others(Bundle& bundle);  // asks nothing that depends on its own pid

// The payload answers, and ends.
template <void (*configure)(Bundle&)>
void ends(Bundle& bundle) {
    bundle.probe_each(questions());
    configure(bundle);
}

// The payload answers, and waits.
void add_wait(Bundle& bundle);
template <void (*configure)(Bundle&)>
void waits(Bundle& bundle) {
    ends<configure>(bundle);
    add_wait(bundle);
}

Words exec_words(const std::vector<Command>& commands = questions(), const Words& options = {});
std::vector<Command> all_questions();
Words sandbox_words(const Words& options = {});

}  // namespace pinfold::faults
