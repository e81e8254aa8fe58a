#pragma once

#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "harness/site/rdma_vm/frame_switch.h"
#include "wire/agent.h"

namespace faultline::rdma_vm {

/// How a fault from outside of guests gets at the rails of a laboratory. What waits for a host ends
/// with kAborted when nobody waits for the laboratory any more. Not thread-safe.
class RailLine {
 public:
  virtual ~RailLine() = default;

  /// Pulls the cable of a rail out, from outside: the guest's NIC loses its carrier.
  virtual Status setCable(int host, int rail, bool plugged) = 0;
  /// Makes the switch drop everything from and to the rail of this host, silently.
  virtual void setBlocked(int host, int rail, bool blocked) = 0;
  /// What the switch has counted.
  virtual const SwitchPort& port(int host, int rail) const = 0;

  /// What the guest itself sees of its rails.
  virtual Result<std::vector<wire::RailState>> railStates(int host) = 0;
  /// The same in two steps, for those who cannot wait: the answer, once it has come.
  virtual Status askForRails(int host) = 0;
  virtual std::optional<std::vector<wire::RailState>> toldRails(int host) const = 0;
  /// Takes in what has come, and waits for at most `timeout` when nothing has. An error when a host
  /// is gone.
  virtual Status listen(Duration timeout) = 0;
};

}  // namespace faultline::rdma_vm
