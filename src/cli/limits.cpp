// ResourceLimits from a file and options of the command line.
#include "cli/limits.hpp"

#include "base/strings.hpp"
#include "base/units.hpp"
#include "json/json.hpp"

namespace pinfold {

namespace {

// Whole megabytes, rounded up: a limit of 1.5m that became 1m would be less than was promised. Less than one holds
// nothing: who writes 512 has forgotten the unit.
Result<uint64_t> megabytes(std::string_view option, const std::string& text) {
    constexpr int64_t kLeast = 1 << 20;
    const std::optional<int64_t> bytes = parse_size(text);
    if (!bytes) return plain_error(concat(option, ' ', quoted(text), ": expected a size, as in 512m"));
    if (*bytes < kLeast) {
        const bool has_unit = *bytes == 0 || text.find_first_not_of("0123456789.") != text.npos;
        return plain_error(concat(option, ' ', quoted(text), ": that is ", *bytes, " bytes, allowed: at least 1m"))
            .with_hint(has_unit ? "" : concat("for megabytes: ", option, ' ', text, 'm'));
    }
    return (uint64_t(*bytes) + (1 << 20) - 1) >> 20;
}

Result<double> seconds(std::string_view option, const std::string& text) {
    const std::optional<std::chrono::nanoseconds> time = parse_duration(text);
    if (!time) return plain_error(concat(option, ' ', quoted(text), ": expected a time, as in 60s"));
    return std::chrono::duration<double>(*time).count();
}

// A network that was only switched on is the one that keeps the host's own services out of reach.
Network network_of(const std::string& word, bool enabled) {
    if (word.empty()) return enabled ? Network::pasta : Network::none;
    return word == "host" ? Network::host : word == "pasta" ? Network::pasta : Network::none;
}

}  // namespace

bool LimitOptions::any() const {
    return !file.empty() || cpus || !memory.empty() || !disk.empty() || !network.empty() || processes ||
           !timeout.empty();
}

Result<WantedLimits> resolve_limits(const LimitOptions& options) {
    ResourceLimits limits;
    std::vector<std::string> asked;
    if (!options.file.empty()) {
        const std::string text = TRY_IN("--limits", read_document(options.file));
        limits = TRY(parse_resource_limits(text, options.file));
        const Json json = TRY(parse_json(text, options.file));
        for (const char* name : {"cpu_cores", "disk_mb"}) {
            if (json.find(name) != nullptr) asked.emplace_back(name);
        }
    }
    if (options.cpus) asked.emplace_back("cpu_cores");
    if (!options.disk.empty()) asked.emplace_back("disk_mb");
    if (options.cpus) limits.cpu_cores = *options.cpus;
    if (!options.memory.empty()) limits.memory_mb = TRY(megabytes("--memory", options.memory));
    if (!options.disk.empty()) limits.disk_mb = TRY(megabytes("--disk", options.disk));
    if (options.processes) limits.max_processes = *options.processes;
    if (!options.timeout.empty()) limits.timeout_seconds = TRY(seconds("--timeout", options.timeout));
    const Network network = network_of(options.network, limits.network_enabled);
    limits.network_enabled = network != Network::none;
    TRY(check_resource_limits(limits));
    return WantedLimits{limits, network, std::move(asked)};
}

}  // namespace pinfold
