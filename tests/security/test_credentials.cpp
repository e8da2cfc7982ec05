// Rights that the payload was not given.
#include "harness.hpp"
#include "support/tried.hpp"

namespace pinfold::integration {

namespace {

std::string inheritable(const json& report) { return report["capabilities"]["inheritable"].dump(); }

}  // namespace

TEST_CASE("CVE-2022-29162: inheritable capabilities stay empty in run, exec and exec --cap") {
    NEEDS_ROOT();
    Bundle bundle;
    WITHSTANDS("run", inheritable(report_of(bundle)) == "[]");
    bundle.probe({"wait-signal"});
    const Container container(bundle, Container::As::running);
    WITHSTANDS("exec", inheritable(container.exec_report()) == "[]");
    WITHSTANDS("exec --cap", inheritable(container.exec_report({"--cap", "CAP_NET_RAW"})) == "[]");
}

}  // namespace pinfold::integration
