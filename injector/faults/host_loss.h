#pragma once

#include <cstdint>
#include <string>

#include "injector/safety/host_fault.h"
#include "injector/safety/neighbours.h"

namespace faultline::injector {

/// What a host sees of an interface of its own that loses a share of its frames: so many of the
/// questions to those who answered before stay unanswered. A question is lost on its way out, or
/// its answer on its way in. Where nobody answered, nothing can be proven.
class HostLoss final : public safety::HostWatch {
 public:
  /// Shares, 0 to 1, of what is sent and of what is received.
  HostLoss(double sent, double received);
  Status prepare(netlink::Socket& socket, int ifindex) override;
  Status step(TimePoint now) override;
  Duration evidenceBudget() const override;
  bool conclusive() const override;
  Evidence verdict() const override;
  Result<std::string> whatIsMissing(netlink::Socket& socket, int ifindex) override;

 private:
  int enough() const;

  double share_;  // of the questions that get no answer
  netlink::Socket* socket_ = nullptr;
  int ifindex_ = 0;
  safety::Neighbours neighbours_;
  TimePoint roundBegan_{};  // {}: nobody has been asked yet
  int asked_ = 0;
  int answered_ = 0;
  bool carrier_ = false;
};

/// What it sees of one that loses everything one way. What is lost on its way out is not counted as
/// sent; what is lost on its way in is counted as received, and is no answer.
class HostOneWay final : public safety::HostWatch {
 public:
  explicit HostOneWay(bool out) : out_(out) {}
  Status prepare(netlink::Socket& socket, int ifindex) override;
  Status step(TimePoint now) override;
  bool conclusive() const override;
  Evidence verdict() const override;
  Result<std::string> whatIsMissing(netlink::Socket& socket, int ifindex) override;

 private:
  bool out_;
  netlink::Socket* socket_ = nullptr;
  int ifindex_ = 0;
  safety::Neighbours neighbours_;
  TimePoint roundBegan_{};
  int rounds_ = 0;  // whose questions could be given to the interface
  std::size_t answers_ = 0;
  std::uint64_t sentBefore_ = 0, receivedBefore_ = 0;  // when the first of them began
  std::uint64_t sent_ = 0, received_ = 0;              // since
  bool carrier_ = false;
};

}  // namespace faultline::injector
