// The part of a filter that looks at a call's arguments. pinfold writes it by itself: libseccomp 2.5.4 merges rules of
// some profiles so that what one comparison has loaded is taken by another for something else, and more is allowed than
// any rule allows.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "seccomp/as_written.hpp"

namespace pinfold {

// A program that answers to all calls of one number as answer_as_written() does.
std::vector<sock_filter> check_arguments(const std::vector<Way>& ways_in_order, uint32_t default_action);

// What takes the place of an answer that stands for a call.
struct Checks {
    std::vector<sock_filter> program;
    uint32_t unseen;  // the answer where the arguments cannot be seen
};

// By the value that the program returns for the call; that program itself looks at an argument only to tell which call
// a multiplexer (socketcall, ipc) is asked for, whose own arguments lie elsewhere. Empty where it does not end.
std::optional<std::vector<sock_filter>> with_argument_checks(std::span<const sock_filter> program,
                                                             const std::map<uint32_t, Checks>& checks);

}  // namespace pinfold
