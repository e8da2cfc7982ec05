// Which of the host's files a sandbox may be given: plain rules, and the check that opens a path by them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"

namespace pinfold {

// Secrets, the kernel's interfaces, and sockets whose other side could be told to do anything.
std::vector<std::string> default_forbidden_paths();

// Where pinfold keeps the states of the caller's containers, by all that the caller may have in its environment.
std::vector<std::string> default_state_roots();

// Rules are absolute paths. A component may hold `*`, which stands for any characters; `~/` is the caller's home.
struct MountPolicy {
    // Absent: everything that is not forbidden. Present: only what is one of these, or lies below one.
    std::optional<std::vector<std::string>> allowed_read_paths;
    std::optional<std::vector<std::string>> allowed_write_paths;
    // Neither these, nor what lies below them, nor what contains one of them.
    std::vector<std::string> forbidden_paths = default_forbidden_paths();
    // Of these, whoever asks by the path itself, without a link on the way, is given what lies below nevertheless.
    std::vector<std::string> given_by_name;
    // As for forbidden paths, but these are plain: also before they exist, and for each link that leads to one.
    // Whoever can write there says which programs are run as a container's hooks.
    std::vector<std::string> state_roots = default_state_roots();
    std::vector<std::string> audit_logs{};  // which nothing that can be written to may be, or contain
    std::string origin = "built in";        // the file that it was read from, for messages
};

enum class Access : uint8_t { read, write };

// Of the error where a rule refused; the message names the rule. No errno: the kernel's refusals are none of a
// policy's.
inline constexpr int kPolicyRefusal = 1 << 16;

// An O_PATH descriptor of what the path leads to, all links followed, if every policy allows it. The decision is made
// on the descriptor: use that (/proc/self/fd/N), never the path again, which may lead elsewhere by now.
Result<UniqueFd> open_allowed(std::span<const MountPolicy> policies, const std::string& path, Access access);
Result<UniqueFd> open_allowed(const MountPolicy& policy, const std::string& path, Access access);

// For an entry that is to be made or replaced, or that is not to be followed: the directory it is in, as an O_PATH
// descriptor. What else that holds does not matter. The entry itself may be a link: do not follow it.
Result<UniqueFd> open_parent_allowed(std::span<const MountPolicy> policies, const std::string& path, Access access);

// Of a directory that is to be bound: refused if somebody answers at a socket in it. A mount, read-only or not, lets
// who is inside connect to them: to a terminal multiplexer, an agent for keys, a daemon.
Result<void> check_no_sockets(int directory);

// Refuses what is, or contains, a program that others run with its owner's rights, where it could be written to.
Result<void> check_no_set_id(int fd);

}  // namespace pinfold
