// Seccomp profiles: read, printed, compiled, and asked about a few calls; and programs that nobody has compiled.
#include <cstring>
#include <vector>

#include "fuzz/target.hpp"
#include "json/json.hpp"
#include "seccomp/access.hpp"
#include "seccomp/bpf_eval.hpp"
#include "seccomp/compile.hpp"
#include "seccomp/profiles.hpp"
#include "seccomp/reporting.hpp"

namespace pinfold::fuzz {

namespace {

Result<Profile> find_shipped(const std::string& name) {
    // Not one that lies in a file: those come from elsewhere than the input.
    if (name.find_first_of("/.") != name.npos) return plain_error("no file");
    return find_explained_profile(name);
}

void check_printed(const Profile& profile) {
    const Json json = to_json(profile);
    const Result<Profile> again = parse_profile(json, {"printed", ""}, find_shipped);
    must_hold(again.has_value(), "a profile that was printed can be read");
    must_hold(json_text(to_json(*again)) == json_text(json), "a profile that was printed is read as the same");
    must_hold(allowed_only_by(profile, *again).empty(), "a profile allows what its copy does");
}

}  // namespace

void try_seccomp(std::string_view input) {
    const std::optional<Json> json = read_document(input);
    if (!json) return;
    const Result<Profile> profile = parse_profile(*json, {"profile", ""}, find_shipped);
    if (!profile) return check_refusal(profile.error());
    check_printed(*profile);
    const Result<SeccompFilter> filter = compile_seccomp(profile->seccomp);
    if (!filter) return check_refusal(filter.error());
    const SeccompFilter reporting = with_reporting(*filter);
    for (const int number : {0, 1, 59, 101, 435, -1}) {
        const seccomp_data call{number, 0xc000003e, 0, {0, 1, ~uint64_t{0}, 0, 0, 0}};
        const uint32_t verdict = evaluate(filter->program, call);
        const bool allowed = verdict == SECCOMP_RET_ALLOW;
        must_hold(allowed == (evaluate(reporting.program, call) == SECCOMP_RET_ALLOW), "reporting allows no more");
    }
}

void try_bpf(std::string_view input) {
    std::vector<sock_filter> program(input.size() / sizeof(sock_filter));
    if (program.empty()) return;
    std::memcpy(program.data(), input.data(), program.size() * sizeof(sock_filter));
    size_t steps = 0;
    evaluate(program, {59, 0xc000003e, 0, {}}, &steps);
    must_hold(steps <= program.size(), "every program comes to an end");
}

}  // namespace pinfold::fuzz
