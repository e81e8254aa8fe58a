#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace faultline::test {

/// One end of a flow: the namespace it is in, its address and the interface it is bound to.
struct FlowEnd {
  int namespace_fd = -1;
  std::string address;
  std::string interface;
};

/// A TCP stream at full speed between two namespaces, bound to devices and closed with a reset
/// (SO_LINGER {1,0}), as the rails of a job are. Two threads until it is destroyed.
class BulkFlow {
 public:
  static Result<std::unique_ptr<BulkFlow>> start(const FlowEnd& from, const FlowEnd& to);
  ~BulkFlow();

  std::uint64_t receivedBytes() const { return received_.load(); }

  /// Bytes per second received during `window` from now on.
  double measure(Duration window) const;

 private:
  BulkFlow() = default;
  std::atomic<std::uint64_t> received_{0};
  std::atomic<bool> stop_{false};
  std::thread sender_;
  std::thread receiver_;
  UniqueFd sending_socket_;
  UniqueFd receiving_socket_;
};

/// Sends one datagram with this type of service, and tells how long it took to arrive.
/// kDeadlineExceeded when it does not within `budget`.
Result<Duration> sendDatagram(const FlowEnd& from, const FlowEnd& to, int tos, Duration budget);

}  // namespace faultline::test
