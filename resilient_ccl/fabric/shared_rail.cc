#include "resilient_ccl/fabric/shared_rail.h"

#include <sys/epoll.h>

namespace faultline::fabric {

Status SharedRail::start(bool offers) {
  RETURN_IF_ERROR(poller_.add(rail_.fd(), EPOLLIN, [this](auto) { rail_.readConnection(); }));
  return offers ? rail_.offer() : okStatus();
}

void SharedRail::fence() {
  if (!rail_.fenced()) poller_.remove(rail_.fd());  // while it is open
  rail_.fence();
}

}  // namespace faultline::fabric
