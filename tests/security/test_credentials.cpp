// Rights that the payload was not given: capabilities that stay, users that are misread.
#include "attacks.hpp"
#include "cp.hpp"
#include "sandbox.hpp"

namespace pinfold::integration {

namespace {

std::string inheritable(const json& report) { return report["capabilities"]["inheritable"].dump(); }

// A caller with inheritable and ambient capabilities of its own.
Ended run_generously(const Bundle& bundle, std::vector<std::string> words) {
    words = bundle.verb(words);
    words.insert(words.begin(),
                 {"setpriv", "--inh-caps", "+net_raw,+sys_admin", "--ambient-caps", "+net_raw,+sys_admin"});
    return run_program(words);
}

struct UserRow {
    const char* text;
    int uid;  // -1: refused
    int gid;
};

// "1" is nobody's name here but a number, whatever the container's own files say.
const UserRow kUsers[] = {
    {"1", 1, 0},
    {"1:2", 1, 2},
    {"01", 1, 0},
    {"0:0", 0, 0},
    {"4294967294", -2, 0},
    {"4294967294:4294967294", -2, -2},
    {":2", -1, -1},
    {":", -1, -1},
    {"1:", -1, -1},
    {"1:2:3", -1, -1},
    {"0x1", -1, -1},
    {"1x", -1, -1},
    {"-1", -1, -1},
    {"1:-1", -1, -1},
    {"+1", -1, -1},
    {" 1", -1, -1},
    {"1 ", -1, -1},
    {"1\n", -1, -1},
    {"1e3", -1, -1},
    {"1.5", -1, -1},
    {"4294967295", -1, -1},
    {"1:4294967295", -1, -1},
    {"4294967296", -1, -1},
    {"4294967297", -1, -1},
    {"18446744073709551615", -1, -1},
    {"18446744073709551617", -1, -1},
    {"\xd9\xa1", -1, -1},
    {"../../etc/passwd", -1, -1},
    {"negative", -1, -1},
    {"huge", -1, -1},
    {"wrapped", -1, -1},
    {"hex", -1, -1},
    {"nothing", -1, -1},
    {"1:nothing", -1, -1},
    {"1:negative", -1, -1},
};

constexpr const char* kHostilePasswd =
    "1:x:0:0::/:/sh\n:x:0:0::/:/sh\nnegative:x:-1:-1::/:/sh\nhuge:x:4294967295:4294967295::/:/sh\n"
    "wrapped:x:4294967296:4294967296::/:/sh\nhex:x:0x0:0x0::/:/sh\nnothing:x:::::\n1x:x:::::\n"
    "4294967295:x:0:0::/:/sh\n4294967296:x:0:0::/:/sh\n4294967297:x:0:0::/:/sh\n18446744073709551615:x:0:0::/:/sh\n";
constexpr const char* kHostileGroups =
    "2:x:0:\n:x:0:\nnegative:x:-1:\n4294967295:x:0:\nhuge:x:4294967295:\nnothing:x::\n";

bool has_ids(const Ended& ended, const UserRow& row) {
    if (ended.status != 0) return false;
    const json ids = json::parse(ended.out)["credentials"];
    const json uids(std::vector<uid_t>(4, static_cast<uid_t>(row.uid)));
    const json gids(std::vector<gid_t>(4, static_cast<gid_t>(row.gid)));
    return ids["uid"] == uids && ids["gid"] == gids;
}

}  // namespace

TEST_CASE("CVE-2022-29162, crun CVE-2022-27650, youki CVE-2025-27612: inheritable capabilities stay empty") {
    NEEDS_ROOT();
    Bundle bundle;
    WITHSTANDS("run", inheritable(report_of(bundle)) == "[]");
    const Ended generous = run_generously(bundle, {"run", "--bundle", bundle.path(), bundle.id()});
    WITHSTANDS("run by a caller that has some", inheritable(json::parse(generous.out)) == "[]");
    WITHSTANDS("and ambient ones", json::parse(generous.out)["capabilities"]["ambient"] == json::array());
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    WITHSTANDS("exec", inheritable(container.exec_report()) == "[]");
    WITHSTANDS("exec --cap", inheritable(container.exec_report({"--cap", "CAP_NET_RAW"})) == "[]");
    WITHSTANDS("exec --user", inheritable(container.exec_report({"--user", "7", "--cap", "CAP_NET_RAW"})) == "[]");
    const Ended joined = run_generously(bundle, {"exec", "--cap", "CAP_NET_RAW", bundle.id(), "/probe", "report"});
    WITHSTANDS("exec by a caller that has some", inheritable(json::parse(joined.out)) == "[]");
}

TEST_CASE("crun CVE-2026-30892: a user is the number that was written, or refused") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    for (const bool hostile : {false, true}) {
        Bundle bundle;
        if (hostile) {
            write_text(bundle.rootfs() / "etc/passwd", kHostilePasswd);
            write_text(bundle.rootfs() / "etc/group", kHostileGroups);
        }
        const Container container(waiting(bundle), Container::As::running);
        for (const UserRow& row : kUsers) {
            INFO("exec --user '", std::string(row.text), "'", std::string(hostile ? " and hostile files" : ""));
            const Ended ended = container.exec({"--user", row.text}, {"/probe", "report"});
            CAPTURE(ended.err);
            const bool refused = row.uid == -1;
            WITHSTANDS(row.text, refused ? is_refused(ended, "") && ended.out.empty() : has_ids(ended, row));
        }
        const Ended empty = container.exec({"--user", ""}, {"/probe", "report"});
        WITHSTANDS("nothing at all", has_ids(empty, {"", 0, 0}) || is_refused(empty, ""));
        for (const char* gids : {"4294967295", "-1", "5,", "4294967296"}) {
            const Ended ended = container.exec({"--additional-gids", gids}, {"/probe", "report"});
            WITHSTANDS(std::string("--additional-gids ") + gids, ended.status != 0 && ended.out.empty());
        }
    }
}

TEST_CASE("crun CVE-2026-30892: the user that stands for no change is refused in a config, a process and a sandbox") {
    NEEDS_ROOT();
    PINFOLD_ONLY();
    Bundle bundle;
    const json users[] = {{{"uid", 4294967295}, {"gid", 1}},
                          {{"uid", 1}, {"gid", 4294967295}},
                          {{"uid", 1}, {"gid", 1}, {"additionalGids", {4294967295}}},
                          {{"uid", 4294967296}, {"gid", 1}},
                          {{"uid", -1}, {"gid", 1}},
                          {{"uid", "1"}, {"gid", 1}}};
    for (const json& user : users) {
        bundle.config["process"]["user"] = user;
        const Outcome outcome = run(bundle);
        WITHSTANDS("run " + user.dump(), is_refused(outcome, "process.user."));
    }
    bundle.config["process"]["user"] = {{"uid", 0}, {"gid", 0}};
    for (const char* user : {"4294967295", "1000:4294967295", "-1", "0x1", ":", "1:", "4294967296"}) {
        const Ended ended = run_job(bundle, {{"--user", user}, {"id", "-u"}, {}});
        CAPTURE(ended.err);
        WITHSTANDS(std::string("sandbox --user ") + user, ended.status == 125 && ended.out.empty());
    }
    const Container container(waiting(bundle), Container::As::running);
    json process = bundle.config["process"];
    process["args"] = {"/probe", "report"};
    for (const json& user : users) {
        process["user"] = user;
        write_text(bundle.host() / "process.json", process.dump());
        const Ended ended = container.exec({"--process", bundle.host() / "process.json"}, {});
        WITHSTANDS("exec --process " + user.dump(), is_refused(ended, "user.") && ended.out.empty());
    }
}

}  // namespace pinfold::integration
