// The last program before the payload. Where the container could reach pinfold's own file with write access
// (CVE-2019-5736), or is to wait for its start, the child leaves that file behind: it executes a sealed file in memory
// that holds some 40 instructions and a list of system calls, of which the last one executes the payload. From then on
// no page and no link (/proc/PID/exe, map_files) leads to pinfold, and a container that waits for its start holds next
// to no memory.
//
// The calls are those of the steps that are taken there (kInTrampoline in child_steps.cpp): each adds its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "pinfold/result.hpp"
#include "pinfold/unique_fd.hpp"
#include "seccomp/compile.hpp"

namespace pinfold {

// Whether there are instructions for this machine.
bool has_trampoline();

// Its file, with room for such a filter (null: none).
Result<UniqueFd> make_trampoline(const SeccompFilter* filter);

// One system call, and what is said if it fails: a packet for a socket, in which the error's number is still to be put.
struct TrampolineCall {
    uint64_t number;
    uint64_t arguments[6];
    uint64_t socket;
    uint64_t packet;
    uint64_t code;     // where in the packet
    uint64_t size;     // of the packet
    uint64_t on_zero;  // how far from the next one to go on if the answer is 0: in a clone, at the end of a socket
};

// The file, while it is written. By a mapping: the payload's limit on the size of files may be in force, and binds
// write(2) here too.
class TrampolineImage {
public:
    static constexpr size_t kMostCalls = 16;

    static Result<TrampolineImage> map(int file, const SeccompFilter* filter);  // as it was made
    ~TrampolineImage();
    TrampolineImage(const TrampolineImage&) = delete;
    TrampolineImage& operator=(const TrampolineImage&) = delete;
    TrampolineImage(TrampolineImage&& other) noexcept;
    TrampolineImage& operator=(TrampolineImage&&) = delete;

    // Data for the calls: the address that it will have.
    uint64_t add(const void* data, size_t size);
    uint64_t add(std::string_view data) { return add(data.data(), data.size()); }
    // For sendmsg(2), with a descriptor whose number is still to be put where the second one says.
    struct Letter {
        uint64_t header;
        uint64_t descriptor;
    };
    Letter add_letter(const std::string& packet);

    // Whose calls are added next, and where their failures are told (-1: to nobody).
    void begin_step(const char* name) { step_ = name; }
    void speak_over(int socket) { socket_ = socket; }
    int socket() const { return socket_; }

    // A call to be made after those that were added before; its object is for the words of a failure.
    void call(long number, std::initializer_list<uint64_t> arguments, const std::string& object);
    void say(const std::string& packet);
    // Where the last one that was added answers 0, leaves out so many of the next ones; or goes back by as many.
    void skip_on_zero(int calls);
    // The last one. Its arguments and environment are those that the trampoline itself is executed with.
    void execute(const std::string& path);

    // The file as a whole, of what was added.
    Result<void> finish();

private:
    TrampolineImage(char* memory, size_t size);

    char* memory_;
    size_t size_;
    size_t used_;
    TrampolineCall calls_[kMostCalls];
    size_t count_ = 0;
    const char* step_ = "";
    int socket_ = -1;
    bool is_full_ = false;
};

// Seals it, and becomes it. Returns only on failure.
Error become_trampoline(int file, const std::vector<std::string>& args, const std::vector<std::string>& env);

// What the trampoline says of a call that failed: it has no words, but those that were made ready for it.
Error error_of_call(const std::string& step, const std::string& object, int code);

}  // namespace pinfold
