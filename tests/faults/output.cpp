// Reading what a container prints, and taking away what differs each time.
#include "output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <stdexcept>

#include "host.hpp"

namespace pinfold::faults {

namespace {

// A namespace is the host's or it is not; which one it is differs each time.
void generalise_namespaces(json& namespaces) {
    for (auto& [name, value] : namespaces.items()) value = value == integration::own_namespace(name) ? "host" : "own";
}

void generalise(json& report) {
    report.erase("clocks");
    generalise_namespaces(report["namespaces"]);
    report["keyring"].erase("id");
    // A sandbox whose supervisor was killed is denied the same calls, by another errno.
    if (report["keyring"].contains("error")) report["keyring"] = "denied";
    for (json& mount : report["mounts"]) {
        for (const char* number : {"id", "parent", "device"}) mount.erase(number);
    }
    for (json& file : report["fds"]) {
        const std::string target = file.value("target", "");
        file["target"] = target.substr(0, target.find('['));
    }
}

}  // namespace

Output Output::through_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    Output out{UniqueFd(ends[0])};
    out.writer_ = UniqueFd(ends[1]);
    return out;
}

Output Output::through_terminal() {
    UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    std::array<char, 64> name{};
    if (!master || ::unlockpt(master.get()) != 0 || ::ptsname_r(master.get(), name.data(), name.size()) != 0) {
        throw std::runtime_error("posix_openpt");
    }
    Output out{std::move(master)};
    out.writer_ = UniqueFd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    return out;
}

bool Output::drain() {
    if (!reader_) return false;
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
    std::array<char, 16384> buffer{};
    ssize_t count = 0;
    while ((count = ::read(reader_.get(), buffer.data(), buffer.size())) > 0)
        text_.append(buffer.data(), size_t(count));
    return count < 0 && errno == EAGAIN;
}

bool Output::await(const std::string& line) {
    using Clock = std::chrono::steady_clock;
    writer_.reset();
    const Clock::time_point deadline = Clock::now() + integration::patience();
    for (;;) {
        if (!drain()) return true;
        if (!line.empty() && text_.find(line + "\n") != std::string::npos) return true;
        if (!line.empty() && text_.find(line + "\r\n") != std::string::npos) return true;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        pollfd source{reader_.get(), POLLIN, 0};
        if (left <= 0 || ::poll(&source, 1, static_cast<int>(left)) == 0) return false;
    }
}

const std::string& Output::text() {
    drain();
    return text_;
}

json comparable(const std::string& lines) {
    json out = json::array();
    std::istringstream text(lines);
    for (std::string line; std::getline(text, line) && !text.eof();) {
        if (!line.empty() && line.back() == '\r') line.pop_back();
        json answer = json::parse(line, nullptr, false);
        if (answer.is_discarded()) answer = line;
        if (answer.is_object() && answer.contains("namespaces")) generalise(answer);
        out.push_back(std::move(answer));
    }
    return out;
}

bool begins(const json& learnt, const json& answers) {
    return answers.size() <= learnt.size() && std::equal(answers.begin(), answers.end(), learnt.begin());
}

}  // namespace pinfold::faults
