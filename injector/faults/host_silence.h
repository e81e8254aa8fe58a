#pragma once

#include "injector/safety/host_fault.h"
#include "injector/safety/neighbours.h"

namespace faultline::injector {

/// What a host sees of an interface of its own that swallows everything: it keeps its carrier, and
/// none of those who answered before does. Where nobody did, nothing can be proven.
class HostSilence final : public safety::HostWatch {
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
  std::size_t most_ = 0;  ///< that answered one question
  int rounds_ = 0;        ///< of questions that could be sent, and had their time
  TimePoint asked_{};
  bool carrier_ = false;
};

}  // namespace faultline::injector
