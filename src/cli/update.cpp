// pinfold update: new limits for a container, from a document, from options, or from both.
#include "cgroup/cgroup.hpp"

#include <algorithm>
#include <cerrno>

#include "base/strings.hpp"
#include "base/units.hpp"
#include "cgroup/limit_files.hpp"
#include "cli/begin.hpp"
#include "cli/live.hpp"
#include "cli/verbs.hpp"
#include "json/json.hpp"
#include "policy/check_request.hpp"
#include "sandbox/build_config.hpp"
#include "spec/resources.hpp"

namespace pinfold {

namespace {

constexpr uint64_t kSandboxPeriod = 100000;  // microseconds, as generate() writes it

// Whatever is negative means unlimited.
Result<void> take_size(const std::string& text, std::string_view option, std::optional<int64_t>& out) {
    if (text.empty()) return {};
    const bool negative = text.starts_with('-') && parse_number<int64_t>(text);
    out = negative ? -1 : parse_size(text);
    if (out) return {};
    return plain_error(concat(option, ": found ", quoted(text), ", allowed: bytes, a size as in 100M, or -1"));
}

template <class Number>
void take(const std::optional<Number>& option, std::optional<Number>& out) {
    if (option) out = option;
}

void take(const std::string& option, std::string& out) {
    if (!option.empty()) out = option;
}

// An option has the last word over the document.
Result<void> take_options(const UpdateOptions& options, Resources& out) {
    TRY(take_size(options.memory, "--memory", out.memory.limit));
    TRY(take_size(options.memory_swap, "--memory-swap", out.memory.swap));
    TRY(take_size(options.memory_reservation, "--memory-reservation", out.memory.reservation));
    TRY(take_size(options.kernel_memory, "--kernel-memory", out.memory.kernel));
    TRY(take_size(options.kernel_memory_tcp, "--kernel-memory-tcp", out.memory.kernel_tcp));
    take(options.cpu_shares, out.cpu.shares);
    take(options.cpu_quota, out.cpu.quota);
    take(options.cpu_period, out.cpu.period);
    take(options.cpu_burst, out.cpu.burst);
    take(options.cpu_idle, out.cpu.idle);
    take(options.cpu_rt_period, out.cpu.realtime_period);
    take(options.cpu_rt_runtime, out.cpu.realtime_runtime);
    take(options.cpuset_cpus, out.cpu.cpus);
    take(options.cpuset_mems, out.cpu.mems);
    take(options.pids_limit, out.pids_limit);
    take(options.blkio_weight, out.block_io.weight);
    return {};
}

Result<Resources> requested(const UpdateOptions& options, const std::string& document) {
    Resources resources;
    Problems problems;
    if (!options.resources_file.empty()) {
        const bool is_input = names_standard_input(options.resources_file);
        const Json json = TRY(parse_json(document, is_input ? "standard input" : options.resources_file));
        resources = parse_resources(json, problems);
    }
    TRY(take_options(options, resources));
    validate_resources(resources, "", problems);
    if (!problems.empty()) return to_error(problems, "resources");
    return resources;
}

// Whole megabytes, rounded up; whatever is negative means unlimited.
std::optional<uint64_t> megabytes(const std::optional<int64_t>& bytes) {
    if (!bytes) return std::nullopt;
    return *bytes < 0 ? *kUnlimited.memory_mb : (uint64_t(*bytes) + (1 << 20) - 1) >> 20;
}

// Of a period that is not told, the one that sandboxes have; a period alone would change what the quota means.
std::optional<double> cores(const CpuLimits& cpu) {
    if (!cpu.quota && !cpu.period) return std::nullopt;
    if (!cpu.quota || *cpu.quota <= 0) return kUnlimited.cpu_cores;
    return double(*cpu.quota) / double(cpu.period.value_or(kSandboxPeriod));
}

// A sandbox may be given no more than one that is started.
Result<void> check_policies(const ContainerRecord& record, const Resources& wanted, const CommandLine& line) {
    if (!record.annotations.contains(kSandboxAnnotation)) return {};
    SandboxLimits limits;
    limits.memory_mb = std::max(megabytes(wanted.memory.limit), megabytes(wanted.memory.swap));
    limits.cpu_cores = cores(wanted.cpu);
    if (wanted.pids_limit)
        limits.max_processes = *wanted.pids_limit <= 0 ? kUnlimited.max_processes : *wanted.pids_limit;
    return check_update(line.gate->policies(), limits);
}

// A start that is still to come compares with these what the kernel has.
void add_limits(const std::vector<CgroupWrite>& written, std::vector<CgroupWrite>& limits) {
    limits.insert(limits.end(), written.begin(), written.end());
    limits = lasting_writes(limits);
}

Result<int> update_it(const UpdateOptions& options, const CommandLine& line, const Resources& resources) {
    const StateLock lock = TRY(StateLock::take(line.global.root, options.id));
    ContainerRecord record = TRY(load_with_cgroup(Operation::update, options.id, line)).record;
    TRY(check_policies(record, resources, line));
    const auto keep = [&](const GroupLimits& written) -> Result<void> {
        if (!record.limits) return {};
        add_limits(written.v2, record.limits->v2);
        add_limits(written.v1, record.limits->v1);
        Result<void> kept = replace_record(line.global.root, record);
        // It has ended meanwhile, perhaps of the new limit: nobody will ask what is due.
        if (!kept && kept.error().code == ENOENT) return {};
        return kept;
    };
    TRY(update_cgroup(record.cgroup, resources, keep));
    return 0;
}

// As the caller has put it: options and document.
AuditEvent event_of(const UpdateOptions& options, const CommandLine& line, const std::string& document) {
    std::vector<std::string> words;
    for (char** word = line.argv + 1; *word != nullptr; ++word) words.emplace_back(*word);
    AuditEvent event{"update", options.id, "", {{"options", json_list(words)}}};
    if (!document.empty()) event.members.emplace_back("document", json_quoted(document));
    return event;
}

}  // namespace

Result<int> verb_update(const UpdateOptions& options, const CommandLine& line) {
    const std::string& file = options.resources_file;
    const std::string document = file.empty() ? "" : TRY(read_document_or_input(file));
    const Resources resources = TRY(requested(options, document));
    return audited(line, event_of(options, line, document), [&] { return update_it(options, line, resources); });
}

}  // namespace pinfold
