#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "injector/fault.h"
#include "injector/netlink/socket.h"
#include "injector/safety/operation.h"

namespace faultline::safety {

/// What a host can see by itself of a fault of one of its interfaces. It judges what it sees, and
/// not what was done; it changes nothing, and sends nothing but probes.
class HostWatch {
 public:
  virtual ~HostWatch() = default;
  /// Before the strike: what is there, and who answers. May take some 100 ms.
  virtual Status prepare(netlink::Socket& socket, int ifindex) = 0;
  /// About every millisecond while it lasts.
  virtual Status step(TimePoint now) = 0;
  /// It is over, and what was seen so far is not conclusive: from now on probes of its own that
  /// give load are in order. step() goes on for evidenceBudget() at most.
  virtual Status demandEvidence() { return okStatus(); }
  virtual Duration evidenceBudget() const { return std::chrono::milliseconds(500); }
  /// Whether more observing cannot change the verdict.
  virtual bool conclusive() const = 0;
  virtual injector::Evidence verdict() const = 0;
  /// After the undo: what was there before and is not yet; empty: nothing. The interface may have
  /// another index by then.
  virtual Result<std::string> whatIsMissing(netlink::Socket& socket, int ifindex) = 0;
};

/// A fault of an interface of this host: what is done, and what is observed.
struct HostFault {
  std::vector<Operation> operations;
  std::unique_ptr<HostWatch> watch;
};

}  // namespace faultline::safety
