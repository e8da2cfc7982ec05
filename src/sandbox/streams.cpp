// A job's standard streams.
#include "sandbox/streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/fs.hpp"
#include "base/strings.hpp"

namespace pinfold {

namespace {

Result<UniqueFd> duplicate(int fd) {
    UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (!copy) return errno_error(concat("standard stream ", fd));
    return copy;
}

// A normal user's pipes are the payload's anyway.
Result<void> give_away(const Streams& streams, uid_t owner) {
    for (const UniqueFd* pipe : {&streams.out, &streams.err}) {
        if (::fchown(pipe->get(), owner, gid_t(-1)) != 0 && ::geteuid() == 0)
            return errno_error("give the output's pipes to the payload");
    }
    return {};
}

}  // namespace

Result<JobStreams> make_streams(const StreamWishes& wishes) {
    JobStreams made;
    made.streams.in = wishes.input >= 0 ? TRY(duplicate(wishes.input)) : TRY(open_at(AT_FDCWD, "/dev/null", O_RDONLY));
    if (!wishes.capture && wishes.output_limit == 0) {
        made.streams.out = TRY(duplicate(STDOUT_FILENO));
        made.streams.err = TRY(duplicate(STDERR_FILENO));
        return made;
    }
    made.output = TRY(Output::create(wishes.capture, wishes.output_limit));
    made.streams.out = made.output->take_write_end(0);
    made.streams.err = made.output->take_write_end(1);
    if (wishes.owner) TRY(give_away(made.streams, *wishes.owner));
    return made;
}

}  // namespace pinfold
