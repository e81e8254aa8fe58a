#pragma once

#include <cstdint>
#include <string>

#include "injector/faults/still_watch.h"
#include "injector/safety/host_fault.h"
#include "injector/safety/neighbours.h"

namespace faultline::injector {

/// What a host sees of a port of its own that is switched off: its driver has no carrier, and its
/// counters stand still. Neighbours are no evidence, as they cannot be asked through it; afterwards
/// those that answered before must answer again.
class HostPort final : public safety::HostWatch {
 public:
  Status prepare(netlink::Socket& socket, int ifindex) override;
  Status step(TimePoint now) override;
  bool conclusive() const override;
  Evidence verdict() const override;
  Result<std::string> whatIsMissing(netlink::Socket& socket, int ifindex) override;

 private:
  netlink::Socket* socket_ = nullptr;
  int ifindex_ = 0;
  safety::Neighbours neighbours_;
  bool seen_ = false;
  bool carrier_ = true;
  StillWatch received_;
  StillWatch sent_;
};

}  // namespace faultline::injector
