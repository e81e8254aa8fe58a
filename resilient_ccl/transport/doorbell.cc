#include "resilient_ccl/transport/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/limits.h"
#include "base/system_calls.h"

namespace faultline::transport {

Status Doorbell::open() {
  event_ = UniqueFd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  return event_ ? okStatus() : callRefused(errno, "eventfd2", "create an event descriptor");
}

void Doorbell::clear() {
  std::uint64_t count;
  countSystemCall();
  (void)!read(event_.get(), &count, sizeof(count));
}

void Doorbell::ring() {
  if (!armed_.exchange(false, std::memory_order_acq_rel)) return;
  const std::uint64_t one = 1;
  countSystemCall();
  (void)!write(event_.get(), &one, sizeof(one));
}

}  // namespace faultline::transport
