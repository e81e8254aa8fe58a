#pragma once

#include <optional>

#include "base/clock.h"
#include "base/status.h"
#include "wire/agent.h"

namespace faultline::site {

/// How what a fault on a node is asked gets to what holds it there (wire/holder.h), and what that
/// answers comes back. Not thread-safe.
class HolderLine {
 public:
  virtual ~HolderLine() = default;

  /// Starts what holds a fault on a node, with its first message. Its number.
  virtual Result<int> startFault(int node, const wire::HeldFault& fault) = 0;
  virtual Status tellFault(int fault, const wire::ToHolder& message) = 0;
  /// What it has said next, if it has come: call listen(). Moments are of this process's clock.
  /// wire::Gone when it has ended.
  virtual std::optional<wire::FromHolder> faultSaid(int fault) = 0;
  virtual Status endFault(int fault) = 0;
  /// Takes in what has come, and waits for at most `timeout` when nothing has. An error when a node
  /// is gone.
  virtual Status listen(Duration timeout) = 0;
};

}  // namespace faultline::site
