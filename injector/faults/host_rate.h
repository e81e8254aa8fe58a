#pragma once

#include <vector>

#include "injector/faults/throttle_plan.h"
#include "injector/netlink/frame_socket.h"
#include "injector/safety/host_fault.h"

namespace faultline::injector {

/// What a host sees of a limit to what one of its interfaces sends: the rate at which our queue is
/// emptied while something waits in it. Where programs give no such load, probe frames to an
/// address that no bridge or switch passes on (01:80:c2:00:00:0e).
class HostRate final : public safety::HostWatch {
 public:
  explicit HostRate(BitsPerSecond rate) : rate_(rate) {}
  Status prepare(netlink::Socket& socket, int ifindex) override;
  Status step(TimePoint now) override;
  Status demandEvidence() override;
  Duration evidenceBudget() const override;
  bool conclusive() const override;
  Evidence verdict() const override;
  Result<std::string> whatIsMissing(netlink::Socket& socket, int ifindex) override;

 private:
  Status look(TimePoint now);
  Status feed();

  BitsPerSecond rate_;
  netlink::Socket* socket_ = nullptr;
  int ifindex_ = 0;
  ThrottlePlan plan_;
  BacklogMeter meter_ = plan_.meter();
  Bytes backlog_ = 0;
  bool there_ = false;  ///< our queue, when it was last looked at
  std::vector<netlink::FrameSocket> probes_;
};

}  // namespace faultline::injector
