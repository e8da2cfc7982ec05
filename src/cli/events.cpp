// pinfold events: what a container uses, again and again until it ends, and when the kernel killed for memory.
#include <algorithm>
#include <chrono>

#include "base/strings.hpp"
#include "base/units.hpp"
#include "cgroup/stats.hpp"
#include "cgroup/watch.hpp"
#include "cli/live.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"

namespace pinfold {

namespace {

using std::chrono::milliseconds;

// Kernel and callers gain nothing from less than a millisecond; poll() counts in an int of them.
Result<milliseconds> interval_of(const std::string& text) {
    const auto interval = parse_duration(text);
    if (!interval || interval->count() == 0) {
        return plain_error(concat("--interval: found ", quoted(text), ", allowed: a time as in 500ms, 5s or 1m30s"));
    }
    const auto rounded = std::chrono::duration_cast<milliseconds>(*interval);
    return std::clamp(rounded, milliseconds(1), milliseconds(INT32_MAX));
}

Result<void> print_stats(const std::string& id, const std::string& data) {
    return print(JsonObject().add_text("type", "stats").add_text("id", id).add("data", data).text() + "\n");
}

Result<void> print_oom(const std::string& id) {
    return print(JsonObject().add_text("type", "oom").add_text("id", id).text() + "\n");
}

}  // namespace

Result<int> verb_events(const EventsOptions& options, const CommandLine& line) {
    using Event = GroupWatch::Event;
    const milliseconds interval = TRY(interval_of(options.interval));
    const ContainerRecord record = TRY(load_with_cgroup(Operation::events, options.id, line)).record;
    GroupWatch watch = TRY(GroupWatch::create(record.cgroup));
    const V1GroupFds v1 = TRY(V1GroupFds::open(record.cgroup));
    if (options.stats) {
        TRY(print_stats(options.id, stats_to_json(watch.group(), v1)));
        return 0;
    }
    for (;;) {
        const Deadline deadline(interval);
        Event event = TRY(watch.next(deadline));
        for (; event == Event::oom; event = TRY(watch.next(deadline))) TRY(print_oom(options.id));
        if (event == Event::empty) return 0;
        TRY(print_stats(options.id, stats_to_json(watch.group(), v1)));
    }
}

}  // namespace pinfold
