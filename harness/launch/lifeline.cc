#include "harness/launch/lifeline.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace faultline::launch {

Lifeline::Lifeline(UniqueFd pipe)
    : pipe_(std::move(pipe)), stop_(::eventfd(0, EFD_CLOEXEC)), watcher_([this] {
        pollfd ready[] = {{pipe_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
        while (::poll(ready, 2, -1) < 0 && errno == EINTR) {
        }
        // Nobody ever writes into the pipe: whatever happens to it is its end.
        if (ready[0].revents != 0) ::_exit(kExitOrphaned);
      }) {}

Lifeline::~Lifeline() {
  const std::uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof one) == sizeof one) {
    watcher_.join();
  } else {
    ::_exit(kExitOrphaned);  // cannot happen with an eventfd of ours; joining would hang
  }
}

}  // namespace faultline::launch
