// Where one worker of a sweep tries its points: a container that is made anew for each, its neighbour that must not
// notice anything, and what both look like when nothing goes wrong.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness.hpp"
#include "output.hpp"
#include "terminal.hpp"
#include "trace.hpp"

namespace pinfold::faults {

using integration::Bundle;
using integration::Ended;

using Words = std::vector<std::string>;

// How far the container has come before the verb.
enum class Stage { none, created, running, paused, stopped };

class World;

struct Scenario {
    std::string name;
    Stage before = Stage::none;
    Words words;  // of the verb; ID, BUNDLE and HOST stand for this world's
    void (*configure)(Bundle&) = [](Bundle&) {};
    // What is missing of what the verb claims to have done; empty where nothing is.
    std::string (*missing)(World&) = [](World&) { return std::string(); };
    int status = 0;  // that it ends with when undisturbed
    bool rootless = false;
    bool console = false;   // the container has a terminal, handed over by a console socket
    bool terminal = false;  // the caller's, which pinfold passes on
    bool listener = false;  // a program waits for the filter's listener
    bool cold = false;      // no compiled seccomp filter is there
    bool joined = false;    // the container lives in its neighbour's pid namespace
};

class World {
public:
    explicit World(const Scenario& scenario);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    // The verb, undisturbed. What comes of it is what has to come of it wherever it claims to have succeeded.
    std::vector<Call> learn();
    // What is wrong after this fault; empty where nothing is. `reached`: its call was made.
    std::string try_fault(const Fault& fault, bool& reached);
    // What the neighbour has to complain of.
    std::string neighbour_complaint() const;
    void end_neighbour() const;

    // For `missing`.
    const Bundle& bundle() const { return *bundle_; }
    Ended verb(const Words& words, int out = -1) const;
    std::string status() const;
    std::string container_complaint();                // it does not wait as it did when undisturbed
    std::string verb_complaint();                     // it did not print what it did when undisturbed
    std::string difference(const std::string& text);  // to the text of the undisturbed run
    std::string end_complaint();                      // the container's payload still lives

private:
    Words command(const Words& words) const;
    void prepare();
    void stop() const;
    Traced trace_verb(const Fault* fault);
    std::string judge(const Fault& fault, const Traced& traced);
    std::string clean_up();
    std::string left_behind() const;
    std::string look_at_neighbour() const;
    std::set<std::string> list_files() const;

    const Scenario& scenario_;
    std::unique_ptr<Bundle> bundle_;
    std::unique_ptr<Bundle> neighbour_;
    integration::SpawnOptions spawn_;
    std::string neighbour_state_;
    std::vector<std::string> groups_;
    std::string mounts_;
    std::set<std::string> files_;
    std::unique_ptr<integration::DescriptorSocket> console_;
    std::unique_ptr<integration::DescriptorSocket> listener_;
    Output container_;  // what its payload says
    Output said_;       // by the verb, or by the payload that it runs in the foreground
    Output errors_;
    json container_learnt_;
    json said_learnt_;
    std::string text_learnt_;
};

}  // namespace pinfold::faults
