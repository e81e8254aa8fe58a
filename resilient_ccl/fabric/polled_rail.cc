#include "resilient_ccl/fabric/polled_rail.h"

#include <sys/epoll.h>

namespace faultline::fabric {

Status PolledRail::start() {
  return poller_.add(rail_.fd(), EPOLLIN, [this](std::uint32_t events) {
    if (events & EPOLLOUT) rail_.write(/*streamIsWritable=*/true);
    if (events & ~std::uint32_t{EPOLLOUT}) rail_.read();
  });
}

void PolledRail::fence() {
  if (!rail_.fenced()) poller_.remove(rail_.fd());  // while it is open
  rail_.fence();
}

void PolledRail::transmit() {
  if (fenced()) return;
  if (rail_.canWrite()) rail_.write(/*streamIsWritable=*/false);
  if (fenced() || rail_.wantsWritable() == waitsWritable_) return;
  waitsWritable_ = rail_.wantsWritable();
  poller_.setEvents(rail_.fd(), waitsWritable_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

}  // namespace faultline::fabric
