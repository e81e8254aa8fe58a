#pragma once

#include "resilient_ccl/fabric/fabric.h"

namespace faultline::fabric {

/// Sends and receives nothing; remembers why a link failed.
struct IdleClient : FabricClient {
  void sendDone(int, std::uint64_t) override {}
  void receiveDone(int, std::uint64_t, Bytes) override {}
  void sendFailed(int, std::uint64_t, const Status&) override {}
  void receiveFailed(int, std::uint64_t, const Status&) override {}
  void failedOver(int, const channel::Failover&) override {}
  void failedBack(int, int, TimePoint) override {}
  void explained(int, int, channel::Cause, channel::Where) override {}
  void linkFailed(int, const Status& why) override { failure = why; }
  Status failure;
};

}  // namespace faultline::fabric
