// A job's standard streams.
#include "sandbox/streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/fs.hpp"

namespace pinfold {

namespace {

// A normal user's pipes are the payload's anyway.
Result<void> give_away(const Streams& streams, uid_t owner) {
    for (const UniqueFd* pipe : {&streams.in, &streams.out, &streams.err}) {
        if (!*pipe) continue;
        if (::fchown(pipe->get(), owner, gid_t(-1)) != 0 && ::geteuid() == 0)
            return errno_error("give the pipes of its streams to the payload");
    }
    return {};
}

Result<void> make_input(JobStreams& made, int from) {
    Pipe pipe = TRY(make_pipe(" for the input"));
    made.streams.in = std::move(pipe.from);
    made.input_to = std::move(pipe.to);
    made.input_from = from;
    if (::fcntl(made.input_to.get(), F_SETFL, O_NONBLOCK) != 0) return errno_error("set up a pipe for the input");
    return {};
}

}  // namespace

int input_without_terminal() { return ::isatty(STDIN_FILENO) != 0 ? -1 : STDIN_FILENO; }

Result<JobStreams> make_streams(const StreamWishes& wishes) {
    JobStreams made{.output = TRY(Output::create({wishes.capture, wishes.tee, wishes.merge, wishes.output_limit}))};
    made.streams.out = made.output.take_write_end(0);
    made.streams.err = made.output.take_write_end(1);
    if (wishes.input >= 0 && (::fcntl(wishes.input, F_GETFL) & O_ACCMODE) == O_WRONLY)
        return plain_error("--stdin: standard input can only be written to");
    if (wishes.input >= 0) TRY(make_input(made, wishes.input));
    if (wishes.owner) TRY(give_away(made.streams, *wishes.owner));
    if (!made.streams.in) made.streams.in = TRY(open_at(AT_FDCWD, "/dev/null", O_RDONLY));
    return made;
}

Result<void> JobStreams::connect() {
    TRY(output.connect());
    if (input_to) input = TRY(Flow::from_caller(input_from, std::move(input_to)));
    return {};
}

Result<Streams> null_streams() {
    Streams streams;
    for (UniqueFd* stream : {&streams.in, &streams.out, &streams.err})
        *stream = TRY(open_at(AT_FDCWD, "/dev/null", stream == &streams.in ? O_RDONLY : O_WRONLY));
    return streams;
}

}  // namespace pinfold
