#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "base/status.h"

namespace faultline::rdma_vm {

/// How what a fault inside of a guest is asked gets to what holds it there (fault_holder.h), and
/// what that answers comes back. Not thread-safe.
class HolderLine {
 public:
  virtual ~HolderLine() = default;

  /// Starts what holds a fault in a guest, with its first message. Its number.
  virtual Result<int> startFault(int host, const nlohmann::json& fault) = 0;
  virtual Status tellFault(int fault, const nlohmann::json& message) = 0;
  /// What it has said next, if it has come: call listen(). {type: gone, message} when it has ended.
  virtual std::optional<nlohmann::json> faultSaid(int fault) = 0;
  virtual Status endFault(int fault) = 0;
  /// Takes in what has come, and waits for at most `timeout` when nothing has. An error when a host
  /// is gone.
  virtual Status listen(Duration timeout) = 0;
};

}  // namespace faultline::rdma_vm
