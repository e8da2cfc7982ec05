// One conversation with a systemd manager over D-Bus.
#pragma once

#include <systemd/sd-bus.h>

#include <functional>
#include <memory>
#include <string>

#include "pinfold/result.hpp"

namespace pinfold {

struct BusDeleter {
    void operator()(sd_bus* bus) const { ::sd_bus_flush_close_unref(bus); }
};
struct MessageDeleter {
    void operator()(sd_bus_message* message) const { ::sd_bus_message_unref(message); }
};
using BusMessage = std::unique_ptr<sd_bus_message, MessageDeleter>;

class Manager {
public:
    // The calling user's own manager, or the system's.
    static Result<Manager> connect(bool user);

    // `fill` appends the arguments, and gives a negative errno where it cannot. The error's code is that of D-Bus.
    using Fill = std::function<int(sd_bus_message*)>;
    Result<BusMessage> call(const char* method, const Fill& fill);

    // The same for a method that gives a job; returns when the job is done.
    Result<void> run_job(const char* method, const Fill& fill);

    // Everything that was asked for before has come into force: the manager answers between two pieces of work.
    Result<void> settle(const std::string& unit);

private:
    explicit Manager(sd_bus* bus) : bus_(bus) {}

    std::unique_ptr<sd_bus, BusDeleter> bus_;
};

}  // namespace pinfold
