#include "resilient_ccl/fabric/shared_rail.h"

#include <sys/epoll.h>

namespace faultline::fabric {

Status SharedRail::start(bool offers) {
  RETURN_IF_ERROR(poller_.add(rail_.fd(), EPOLLIN, [this](auto) { rail_.readConnection(); }));
  return offers ? rail_.offer() : okStatus();
}

void SharedRail::fence() {
  const int fd = rail_.fd();
  rail_.fence();
  poller_.forget(fd);  // closed: the kernel has taken it out of the epoll set
}

}  // namespace faultline::fabric
