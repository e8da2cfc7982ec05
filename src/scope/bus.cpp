// One conversation with a systemd manager over D-Bus.
#include "scope/bus.hpp"

#include <cerrno>
#include <cstdlib>
#include <map>

#include "base/strings.hpp"

namespace pinfold {

namespace {

constexpr const char* kService = "org.freedesktop.systemd1";
constexpr const char* kObject = "/org/freedesktop/systemd1";
constexpr const char* kInterface = "org.freedesktop.systemd1.Manager";

// The manager's own socket, which needs no daemon between.
sd_bus* open_private(const std::string& path) {
    sd_bus* bus = nullptr;
    if (::sd_bus_new(&bus) < 0) return nullptr;
    if (::sd_bus_set_address(bus, concat("unix:path=", path).c_str()) >= 0 && ::sd_bus_start(bus) >= 0) return bus;
    ::sd_bus_unref(bus);
    return nullptr;
}

sd_bus* open_private(bool user) {
    if (!user) return open_private(std::string("/run/systemd/private"));
    const char* runtime = ::getenv("XDG_RUNTIME_DIR");
    return runtime == nullptr ? nullptr : open_private(concat(runtime, "/systemd/private"));
}

// Some texts are strerror()'s, and engines would take them for words about the payload's program.
Error call_error(const char* method, int failure, const sd_bus_error& error) {
    const int code = ::sd_bus_error_is_set(&error) ? ::sd_bus_error_get_errno(&error) : -failure;
    const bool has_words = error.message != nullptr && code != ENOENT && code != EACCES && code != EPERM;
    if (!has_words) return errno_error(code, concat("systemd refused ", method));
    std::string words = error.message;
    while (words.ends_with('.')) words.pop_back();
    return Error{code, concat("systemd refused ", method, ": ", words), {}};
}

struct Jobs {
    std::map<std::string, std::string> results;  // of those that have ended, by their paths
};

int note_job(sd_bus_message* message, void* jobs, sd_bus_error*) {
    uint32_t id = 0;
    const char* path = nullptr;
    const char* unit = nullptr;
    const char* result = nullptr;
    if (::sd_bus_message_read(message, "uoss", &id, &path, &unit, &result) >= 0) {
        static_cast<Jobs*>(jobs)->results[path] = result;
    }
    return 0;
}

Result<void> await_job(sd_bus* bus, const Jobs& jobs, const std::string& path) {
    while (!jobs.results.contains(path)) {
        const int processed = ::sd_bus_process(bus, nullptr);
        if (processed < 0) return errno_error(-processed, "read from the bus");
        if (processed > 0) continue;
        const int waited = ::sd_bus_wait(bus, UINT64_MAX);
        if (waited < 0 && waited != -EINTR) return errno_error(-waited, "wait for the bus");
    }
    const std::string& result = jobs.results.at(path);
    if (result == "done") return {};
    return plain_error(concat("the job of systemd ended with ", quoted(result)))
        .with_hint("systemctl status and the journal say more");
}

}  // namespace

Result<Manager> Manager::connect(bool user) {
    if (sd_bus* bus = open_private(user)) return Manager(bus);
    sd_bus* bus = nullptr;
    const int opened = user ? ::sd_bus_open_user(&bus) : ::sd_bus_open_system(&bus);
    if (opened >= 0) return Manager(bus);
    return errno_error(-opened, user ? "connect to the user's bus" : "connect to the system bus");
}

Result<BusMessage> Manager::call(const char* method, const Fill& fill) {
    sd_bus_message* made = nullptr;
    int result = ::sd_bus_message_new_method_call(bus_.get(), &made, kService, kObject, kInterface, method);
    const BusMessage request(made);
    if (result >= 0) result = fill(request.get());
    if (result < 0) return errno_error(-result, concat("ask for ", method));
    sd_bus_error error{};
    sd_bus_message* reply = nullptr;
    const int called = ::sd_bus_call(bus_.get(), request.get(), 0, &error, &reply);
    if (called >= 0) return BusMessage(reply);
    Error failure = call_error(method, called, error);
    ::sd_bus_error_free(&error);
    return failure;
}

Result<void> Manager::run_job(const char* method, const Fill& fill) {
    Jobs jobs;
    sd_bus_slot* slot = nullptr;
    // Before the call: the job may have ended by the time the answer is read.
    const int matched =
        ::sd_bus_match_signal(bus_.get(), &slot, nullptr, kObject, kInterface, "JobRemoved", note_job, &jobs);
    if (matched < 0) return errno_error(-matched, "await jobs of systemd");
    const std::unique_ptr<sd_bus_slot, sd_bus_slot* (*)(sd_bus_slot*)> held(slot, ::sd_bus_slot_unref);
    const BusMessage reply = TRY(call(method, fill));
    const char* path = nullptr;
    if (const int read = ::sd_bus_message_read(reply.get(), "o", &path); read < 0) {
        return errno_error(-read, concat("read the answer to ", method));
    }
    return await_job(bus_.get(), jobs, path);
}

Result<void> Manager::settle(const std::string& unit) {
    TRY(call("GetUnit", [&](sd_bus_message* message) { return ::sd_bus_message_append(message, "s", unit.c_str()); }));
    return {};
}

}  // namespace pinfold
